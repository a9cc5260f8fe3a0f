"""Mechanisms with redundant loops, and their problem in (a, p, lam) with all multipliers.

Ranks come from singular values, optima from non-negative least squares and feasibility from linear
programs.
"""

from dataclasses import dataclass

import numpy as np
from full_problem import column, independent, least_squares_within, numbers
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from support.mechanisms_of_control import admissible, closed

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import InverseDynamicsQP, LoopForceLimits, PostureTask

SAME = 2e-6  # relative, of two ways to solve one QP
RANK = 1e-9
KP = 100.0


def twice_pinned_four_bar():
    """A four-bar whose pin is held at both ends of its axis: 6 rows of rank 2."""
    text = models.path("four_bar").read_text()
    pin = '<connect name="pin" body1="coupler" body2="rocker" anchor="0.15 0 0.2"/>'
    assert pin in text
    again = pin.replace('pin"', 'pin_2"').replace("0.15 0 0.2", "0.15 0.03 0.2")
    return mb.read_mjcf(text.replace(pin, pin + again))


def more_motors(name, *joints):
    """A mechanism with further motors: redundantly actuated."""
    motors = "".join(f'<motor name="{x}_motor" joint="{x}"/>' for x in joints)
    text = models.path(name).read_text()
    return mb.read_mjcf(text.replace("</actuator>", motors + "</actuator>"))


MECHANISMS = {
    "four-bar with two pins": (twice_pinned_four_bar, ("crank",)),
    "3-RRR": (lambda: mb.read_mjcf(models.path("planar_3rrr")), ("x", "y", "phi")),
    "3-RRR with six motors": (
        lambda: more_motors("planar_3rrr", "distal_a", "distal_b", "distal_c"),
        ("x", "y", "phi"),
    ),
}


def states(system, rng, count, spread=0.2):
    for _ in range(count):
        q = closed(system, system.tree.q0 + spread * rng.standard_normal(system.nq))
        A = numbers(system.constraint_jacobian(q))
        yield q, admissible(A, rng.standard_normal(system.nv))


@dataclass
class Judge:
    """The problem in z = (a, p, lam): `E z = e`, `C z <= d`, N of undetermined lam, the tasks."""

    E: np.ndarray
    e: np.ndarray
    C: np.ndarray
    d: np.ndarray
    N: np.ndarray
    sizes: tuple

    def part(self, i):
        """Return the columns of a, p or lam as rows over z."""
        first = sum(self.sizes[:i])
        return np.eye(sum(self.sizes))[first : first + self.sizes[i]]

    def feasible(self):
        size = np.abs(self.d).max()
        n = self.E.shape[1]
        answer = linprog(
            np.append(np.zeros(n), 1.0),
            A_ub=np.hstack([self.C, -np.ones((len(self.C), 1))]),
            b_ub=self.d / size,
            A_eq=np.hstack([self.E, np.zeros((len(self.E), 1))]),
            b_eq=self.e / size,
            bounds=[(None, None)] * n + [(0, None)],
            method="highs",
        )
        assert answer.success
        return answer.x[-1] < 1e-7


def judge(law, q, v, limits):
    """Return the problem at a state; `limits` (nc, 2) of the multipliers."""
    system = law.system
    M, B = numbers(system.mass_matrix(q)), numbers(system.actuation(q))
    A, c = numbers(system.constraint_jacobian(q)), column(system.constraint_bias(q, v))
    f = column(system.passive_force(q, v)) - column(system.bias_force(q, v))
    kept, bias = independent(A, c)
    sizes = (system.nv, system.nu, system.nc)
    E = np.vstack(
        [np.hstack([M, -B, -A.T]), np.hstack([kept, np.zeros((len(kept), sum(sizes[1:])))])]
    )
    made = Judge(E, np.concatenate([f, -bias]), None, None, null_space(A.T), sizes)
    ends = np.vstack([law.ranges.ctrl, limits])
    both = np.vstack([made.part(1), made.part(2)])
    high, low = np.isfinite(ends[:, 1]), np.isfinite(ends[:, 0])
    made.C = np.vstack([both[high], -both[low]])
    made.d = np.concatenate([ends[high, 1], -ends[low, 0]])
    return made


def null_space(A):
    _, S, Vt = np.linalg.svd(A)
    return Vt[int(np.sum(RANK * S[0] < S)) :].T


def optimum(law, q, v, ref, limits, metric, loads, forces=None, preload=0.0):
    """Return (a, p, lam) of the least cost.

    Args:
        law: with one posture task, `ref` its (q, v, a).
        limits: (nc, 2).
        metric: (nc,) W of the loads.
        loads: their weight in the cost.
        forces: weights and reference (nc,) of the multipliers in the cost; none by default.
        preload: (nc,) what the loads deviate from.
    """
    made = judge(law, q, v, limits)
    by_name = {joint.name: joint.dof for joint in law.system.tree.joints}
    dofs = [by_name[name] for name in law.tasks[0].joints]
    error = ref[2] + 2 * np.sqrt(KP) * (ref[1] - v[dofs]) + KP * (ref[0] - q[dofs])
    root = np.sqrt(metric)[:, None]
    N, _ = np.linalg.qr(root * made.N)
    roots = [
        made.part(0)[dofs],
        np.sqrt(law.force_weights.actuators)[:, None] * made.part(1),
        np.sqrt(loads) * N.T @ (root * made.part(2)),
    ]
    rights = [error, np.zeros(law.system.nu), np.sqrt(loads) * N.T @ (root[:, 0] * preload)]
    if forces is not None:
        roots.append(np.sqrt(forces[0])[:, None] * made.part(2))
        rights.append(np.sqrt(forces[0]) * forces[1])
    z, feasible = least_squares_within(
        np.vstack(roots), np.concatenate(rights), made.E, made.e, made.C, made.d
    )
    return np.split(z, np.cumsum(made.sizes)[:2]), feasible


def law_of(mechanism, limits=None, **options):
    """Return a law; `limits` (nc, 2) of all multipliers."""
    system, joints = mechanism
    if limits is not None:
        names = [equality.name for equality in system.equalities]
        by_name = dict(zip(names, limits.reshape(len(names), -1, 2), strict=True))
        options["loop_force_limits"] = LoopForceLimits(by_name)
    return InverseDynamicsQP(system, [PostureTask(joints, kp=KP)], **options)


def reference(law, q, rng):
    ref = law.reference_at(q)
    ref += rng.standard_normal(ref.size) * [0.05] * ref.size
    return ref, ref.reshape(3, -1)


def loads_weight(law):
    """Return W (nc,) of all-equal stiffness, and the weight of loads in the cost."""
    scales = law.stages.scales
    size2 = np.mean(scales.rows[: law.system.nc] ** 2)
    return np.ones(law.system.nc) * size2, law.internal_force_weight * scales.task**2


def equal_stiffness(system):
    return {equality.name: 1.0 for equality in system.equalities}


def agrees(solution, answer):
    (a, p, lam), feasible = answer
    assert feasible
    assert_allclose(solution.a, a, rtol=0, atol=SAME * np.abs(a).max())
    assert_allclose(solution.p, p, rtol=0, atol=SAME * np.abs(p).max())
    assert_allclose(solution.lam, lam, rtol=0, atol=1e-4 * np.abs(lam).max())
