"""Strict levels with quadratic cones, with soft limits and with shared loads.

The judge solves one problem after the other by Clarabel, each with the optima of those before as
equalities, on the QP of a controller without levels.
"""

import clarabel
import numpy as np
import pytest
import scipy
from support.mechanisms_of_control import stand, system_of
from test_levels import disturbed, task_numbers

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import (
    ComTask,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    LoadSharing,
    PostureTask,
    SoftLimit,
)
from mbcasadi.description.status import Status

FEET = ("FL", "FR", "RL", "RR")
LEVELS = [["com"], ["turn"], ["posture"]]
ANSWER = 1e-12  # of Clarabel, which ends at 1e-9 or so
PROXIMAL = 1e-7  # of the weight that makes a level strictly convex, its root
ROUNDED = 1e-10  # of a cone, so that a feasible point stays one
PRESSES = 1e-6  # a multiplier above this is none of rounding
RANK = 1e-6  # of rows of unit length
SAME = 1e-4  # of a level, relative to its error at rest: the root of what Clarabel leaves
UNBOUNDED = 1e29
TICKS = 12
IN_PYTHON = 2  # ticks of the Function of cones, whose method takes seconds
OPTIONS = {
    "cones": {"cone": "quadratic"},
    "cones, two bodies of internal forces": {"cone": "quadratic", "sharing": LoadSharing()},
    "shared loads of all rows": {"sharing": LoadSharing(rows="all")},
    "soft friction": {"soft": [SoftLimit("friction", price=1e-3)]},
    "soft joints at a linear price": {
        "soft": [SoftLimit("joints", price=1e-2, linear=1e-3)],
        "joint_limits": JointLimits(velocity=0.5, braking=100.0),
    },
}


def law_of(options, **more):
    own = dict(options)
    contact = {key: own.pop(key) for key in ("cone",) if key in own}
    tasks = [
        ComTask(kp=100.0),
        FrameTask("trunk", kind="body", position="", name="turn"),
        PostureTask(kp=50.0),
    ]
    contacts = [mb.Contact(foot, friction=0.5, **contact) for foot in FEET]
    return InverseDynamicsQP(system_of("quadruped"), tasks, contacts, **own, **more)


def in_sequence(qp, levels, price):
    """Return the weighted error of each level, one problem after the other.

    A cone with a multiplier z is on the ray of (z_0, -z_1, -z_2) at every optimum of a level, at
    its apex where z is inside the cone: for the levels behind it, the directions across this ray,
    or all three, are equalities too.

    Args:
        qp: the QP, whose slacks are unknowns.
        levels: (A, b) each, `A y = b` desired.
        price: (n,) Hessian of the slacks, in the cost of the first level.
    """
    n, first = len(qp.g), len(qp.lba) - 3 * qp.cones
    upper, lower = (np.abs(bound[:first]) < UNBOUNDED for bound in (qp.uba, qp.lba))
    linear = np.vstack([qp.A_qp[:first][upper], -qp.A_qp[:first][lower]])
    ends = np.concatenate([qp.uba[:first][upper], -qp.lba[:first][lower]])
    cones = [(qp.A_qp[i : i + 3], qp.lba[i : i + 3]) for i in range(first, len(qp.lba), 3)]
    y, N, errors = np.zeros(n), np.eye(n), []
    for k, (A, b) in enumerate(levels):
        paid = np.diag(np.sqrt(price))[price > 0] if k == 0 else np.zeros((0, n))
        R, r = np.vstack([A, paid]), np.concatenate([b, np.zeros(len(paid))])
        G = np.vstack([linear, *(-C for C, _ in cones)])
        gaps = np.concatenate([ends, *(-apex for _, apex in cones)]) - G @ y
        if k:  # y is feasible but for rounding
            gaps[: len(ends)] = np.maximum(gaps[: len(ends)], 0.0)
            gaps[len(ends) :: 3] += ROUNDED * np.abs(gaps[len(ends) :: 3])
        step, z = least_squares(R @ N, r - R @ y, G @ N, gaps, len(ends))
        y = y + N @ step
        errors.append(np.linalg.norm(A @ y - b))
        fixed, left = [R], []
        for (C, apex), force in zip(cones, z[len(ends) :].reshape(-1, 3), strict=True):
            if np.linalg.norm(force) * np.linalg.norm(C) < PRESSES * np.linalg.norm(R.T @ r):
                left.append((C, apex))
                continue
            if force[0] - np.hypot(*force[1:]) > PRESSES * force[0]:
                fixed.append(C)
                continue
            fixed.append(np.linalg.svd([force * [1.0, -1.0, -1.0]])[2][1:] @ C)
            linear, ends = np.vstack([linear, -C[:1]]), np.append(ends, -apex[0])
        cones = left
        E = np.vstack([x / np.linalg.norm(x, axis=1, keepdims=True) for x in fixed]) @ N
        _, S, Vt = np.linalg.svd(E)
        N = N @ Vt[int(np.sum(RANK < S)) :].T
    return errors


def least_squares(A, b, G, gaps, linear):
    """Return the t of least `|A t - b|` and its multipliers, by Clarabel.

    Args:
        A, b: of the cost; a small weight makes it strictly convex.
        G, gaps: `gaps - G t` is not negative in the first rows, then in cones of three rows.
        linear: number of the first ones.
    """
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = ANSWER
    cones = [clarabel.SecondOrderConeT(3)] * ((len(gaps) - linear) // 3)
    H = A.T @ A + (PROXIMAL * np.linalg.norm(A, 2)) ** 2 * np.eye(A.shape[1])
    matrices = [scipy.sparse.csc_matrix(x) for x in (np.triu(H), G)]
    problem = clarabel.DefaultSolver(
        matrices[0],
        -A.T @ b,
        matrices[1],
        gaps,
        [clarabel.NonnegativeConeT(linear), *cones],
        settings,
    )
    answer = problem.solve()
    return np.array(answer.x), np.array(answer.z)


def levels_of(law, qp, q, v, ref):
    """Return (A, b) of each level over y = (p, w), rows weighted."""
    tasks, found = task_numbers(law, q, v, ref), []
    for members in LEVELS:
        J, rhs, weight = (np.concatenate(x) for x in zip(*(tasks[m] for m in members), strict=True))
        of_slacks = np.zeros((len(J), len(qp.g) - qp.T.shape[1]))
        A = np.sqrt(weight)[:, None] * np.hstack([J @ qp.T, of_slacks])
        found.append((A, np.sqrt(weight) * (rhs - J @ qp.t)))
    return found


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.every(2)
def test_levels_are_those_in_sequence(name, tmp_path, is_thorough):
    """As C with cones, of others the Function: their C, of 100,000 lines, with `--all`."""
    options = OPTIONS[name]
    law, plain = law_of(options, levels=LEVELS), law_of(options)
    in_c = "cone" in options or is_thorough
    tick = export_c(law, tmp_path / "law").load() if in_c else law.function
    rng, touched, nu = np.random.default_rng(0), 0, law.system.nu
    slacks = len(law.controller.outputs[-1].components) if law.soft else 0
    z = law.z0
    for k in range(TICKS):
        q, v = stand(law.system, rng, spread=0.1, speed=0.5, key="stand")
        ref = disturbed(law, law.system.tree.keyframes["stand"], rng, 30.0 if k % 2 else 3.0)
        out = tick(q=q, v=v, ref=ref, mask=np.ones(len(law.mask_names)), z=z)
        assert float(out["status"]) == Status.SOLVED
        got, z, qp = np.array(out["levels"]).ravel(), out["z_next"], plain.problem(q, v, ref)
        price = np.zeros(len(qp.g))
        price[nu : nu + slacks] = np.diag(qp.H)[nu : nu + slacks]
        levels = levels_of(law, qp, q, v, ref)
        expected = in_sequence(qp, levels, price)
        sizes = np.array([np.linalg.norm(b) for _, b in levels])
        assert np.all(np.abs(got - expected) <= SAME * sizes), (k, got, expected, sizes)
        touched += expected[0] > 0.01 * sizes[0]
        if in_c and k < IN_PYTHON:
            solution = law.solve(q, v, ref)
            assert solution.status == Status.SOLVED
            assert np.all(np.abs(list(solution.levels.values()) - got) <= 1e-6 * sizes)
    assert touched >= 3


def test_explain_says_what_the_first_level_pays_for():
    law = law_of({"soft": [SoftLimit("friction", price=1e-3)]}, levels=LEVELS)
    q = np.array(law.system.tree.keyframes["stand"])
    ref = law.reference_at(q)
    ref[law.reference_slices["com.acceleration"]] = [7.0, 0.0, 0.0]
    text = str(law.explain(q, np.zeros(18), ref))
    assert "level 1 (com) is excluded by the price of contact 'FL': friction" in text
