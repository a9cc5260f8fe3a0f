"""MPC of a single rigid body against the same QP made another way: dense, from the equations."""

import numpy as np
import pytest
import quadprog
from scipy.linalg import expm
from support.mpc_cases import BODY, BODY_WEIGHTS, FEET, rigid_body, trotting

import mbcasadi as mb
import mbcasadi.errors as err

SOLVERS_AGREE = 1e-7  # of the weight
LARGE = 100.0  # rad, m or their rates, beyond what a robot does
RHO, PERIOD, HORIZON = 1e-4, 0.03, 3  # of the registry's case
STATES_CHECKED, SPARSE_EVERY = 400, 40


def equations(x0, feet):
    """Return A, B, drift of one sample by a matrix exponential of the body's equations."""
    c, s = np.cos(x0[2]), np.sin(x0[2])
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    block = np.zeros((25, 25))
    block[0:3, 6:9], block[3:6, 9:12] = R.T, np.eye(3)
    for i, foot in enumerate(feet.reshape(4, 3)):
        for axis in range(3):
            moment = np.cross(foot - x0[3:6], np.eye(3)[axis])
            block[6:9, 12 + 3 * i + axis] = np.linalg.solve(R @ BODY.inertia @ R.T, moment)
            block[9 + axis, 12 + 3 * i + axis] = 1 / BODY.mass
    block[11, 24] = -9.81
    flow = expm(PERIOD * block)
    return flow[:12, :12], flow[:12, 12:24], flow[:12, 24]


def dense_solution(x0, feet, ref, mask):
    """Return f (N, 12) by quadprog, of the forces of all feet; those in the air are left out."""
    N = mask.size // 4
    A, B, drift = equations(x0, feet)
    on = np.repeat(mask > 0.5, 3)
    of_f, rest = np.zeros((12, 12 * N)), x0.copy()
    H, g = RHO * np.eye(12 * N), np.zeros(12 * N)
    for k in range(N):
        of_f, rest = A @ of_f, A @ rest + drift
        of_f[:, 12 * k : 12 * k + 12] += B
        H += of_f.T @ np.diag(BODY_WEIGHTS) @ of_f
        g += of_f.T @ (BODY_WEIGHTS * (rest - ref[12 * k : 12 * k + 12]))
    mu, sides = BODY.friction, []
    sides += [[-1, 0, mu], [1, 0, mu], [0, -1, mu], [0, 1, mu], [0, 0, 1], [0, 0, -1]]
    C = np.kron(np.eye(np.count_nonzero(on) // 3), np.array(sides))
    b = np.tile([0, 0, 0, 0, BODY.f_min, -BODY.f_max], np.count_nonzero(on) // 3)
    f = np.zeros(12 * N)
    if np.any(on):
        f[on] = quadprog.solve_qp(H[np.ix_(on, on)], -g[on], C.T, b)[0]
    return f.reshape(N, 12)


def sparse_solution(x0, feet, ref, mask):
    """Return f (N, 12) by quadprog, with the states as unknowns and the motion as equalities."""
    N = mask.size // 4
    A, B, drift = equations(x0, feet)
    off = np.repeat(mask < 0.5, 3)
    nx, nf = 12 * N, 12 * N
    H = np.diag(np.r_[np.tile(BODY_WEIGHTS, N), np.full(nf, RHO)])
    motion = np.hstack([np.eye(nx) - np.kron(np.eye(N, k=-1), A), -np.kron(np.eye(N), B)])
    start = np.tile(drift, N)
    start[:12] += A @ x0
    still = np.hstack([np.zeros((off.sum(), nx)), np.eye(nf)[off]])
    mu = BODY.friction
    sides = [[-1, 0, mu], [1, 0, mu], [0, -1, mu], [0, 1, mu], [0, 0, 1], [0, 0, -1]]
    cones = np.kron(np.diag(mask)[mask > 0.5], np.array(sides, dtype=float))
    least = np.tile([0, 0, 0, 0, BODY.f_min, -BODY.f_max], np.count_nonzero(mask > 0.5))
    rows = [motion, still, np.hstack([np.zeros((len(cones), nx)), cones])]
    b = np.concatenate([start, np.zeros(len(still)), least])
    g = np.r_[np.tile(BODY_WEIGHTS, N) * ref, np.zeros(nf)]
    solution = quadprog.solve_qp(H, g, np.vstack(rows).T, b, nx + len(still))[0]
    return solution[nx:].reshape(N, 12)


@pytest.fixture(scope="module")
def law():
    return rigid_body()


def test_forces_are_those_of_the_dense_problem(law):
    rng, limited, swinging = np.random.default_rng(0), 0, 0
    for _ in range(100):
        x0, feet, ref, mask = trotting(law, rng).values()
        u, z, status, *_ = (
            np.array(out).ravel() for out in law.function(x0, feet, ref, mask, law.controller.z0)
        )
        assert status == 0
        expected = dense_solution(x0, feet, ref, mask)
        assert np.abs(u - expected[0]).max() < SOLVERS_AGREE * BODY.weight
        limited += np.any(z)
        swinging += not np.all(mask)
        np.testing.assert_allclose(u.reshape(4, 3)[mask[:4] < 0.5], 0, atol=1e-9)
    assert limited > 30
    assert swinging > 30


@pytest.mark.long
def test_hundreds_of_solutions_of_the_c_are_right_and_every_state_has_one(tmp_path):
    """Zero force is inside every cone, and f_min above each foot: no state is infeasible.

    The problem with its states as unknowns takes quadprog fifty times longer: some states only.
    """
    law, rng = rigid_body(8, name="eight_samples"), np.random.default_rng(7)
    program = mb.export_c(law, tmp_path / "c").load()
    z, worst, solved, limited = law.controller.z0, 0.0, 0, 0
    for k in range(STATES_CHECKED):
        x0, feet, ref, mask = trotting(law, rng).values()
        if k % 5 == 4:  # far from where it should be
            x0[3:] += rng.standard_normal(9)
        if k % 25 == 24:
            mask[:] = 0  # in flight
        u, z_next, status, *_ = (np.array(out).ravel() for out in program(x0, feet, ref, mask, z))
        z = np.zeros(z.size) if k % 3 == 0 else z_next
        reference = dense_solution if k % SPARSE_EVERY else sparse_solution
        expected = reference(x0, feet, ref, mask)[0]
        worst = max(worst, np.abs(u - expected).max() if status == 0 else 0.0)
        solved += status[0] == 0
        limited += np.any(z_next)
    assert worst < SOLVERS_AGREE * BODY.weight
    assert solved == STATES_CHECKED
    assert limited > STATES_CHECKED / 2


@pytest.mark.long
def test_what_cannot_be_computed_is_not_called_solved(law, tmp_path):
    """Numbers without sense end in a bounded answer, and what counts as solved is right."""
    rng, seen, solved = np.random.default_rng(5), set(), 0
    program = mb.export_c(law, tmp_path / "c").load(flags=("-O0",))
    for k in range(200):
        x0, feet, ref, mask = trotting(law, rng).values()
        wild = [x0, feet, ref, mask][k % 4]
        wild[rng.integers(wild.size)] = rng.choice([np.nan, np.inf, 1e200, -1e11, 1e6, -3.0])
        answer = program(x0, feet, ref, mask, law.controller.z0)
        u, z, status = (np.array(out).ravel() for out in answer[:3])
        same = law.function(x0, feet, ref, mask, law.controller.z0)[2] == status
        # whether a residual of numbers like 1e6 or 1e11 is called small enough is rounding
        assert same or (np.all(np.isfinite(wild)) and np.abs(wild).max() > LARGE)
        seen.add(status[0])
        assert np.all(np.isfinite(u))
        assert np.all(np.abs(z[: law.controller.stages.m]) <= 1)
        assert np.all(np.isfinite(z))
        low, high = law.controller.u_min, law.controller.u_max
        assert np.all((low <= u) & (u <= high))
        if not np.all(np.isfinite(wild)) or np.abs(wild).max() > 1e12:
            assert status == 3
        if status == 0 and np.abs(np.concatenate([x0, feet])).max() < LARGE:
            expected = dense_solution(x0, feet, ref, np.round(mask > 0.5))[0]
            assert np.abs(u - expected).max() < SOLVERS_AGREE * BODY.weight
            solved += 1
    assert {0.0, 3.0} <= seen
    assert solved > 10


def test_the_plan_is_the_solution_and_its_motion(law):
    rng = np.random.default_rng(6)
    for _ in range(5):
        given = list(trotting(law, rng).values())
        x0, feet, ref, mask = given
        plan = law.solve(x0, feet.reshape(4, 3), ref, mask=mask.reshape(-1, 4))
        assert plan.status_text == "solved"
        x, f = plan.states, plan.planned_forces.reshape(-1, 12)
        np.testing.assert_allclose(plan.forces.ravel(), f[0], atol=1e-9 * BODY.weight)
        expected = dense_solution(*given)
        np.testing.assert_allclose(f, expected, atol=1e-6 * BODY.weight)
        A, B, drift = equations(given[0], given[1])
        np.testing.assert_allclose(x[0], given[0])
        np.testing.assert_allclose(x[1:], x[:-1] @ A.T + f @ B.T + drift, atol=1e-9)
    assert law.controller.prediction_rows[:3] == ("roll", "pitch", "yaw")


WRONG_SHAPES = {
    "schedule": ({"mask": np.ones((HORIZON + 1, 4))}, r"mask .*\(4, 4\), expected \(3, 4\)"),
    "ref": ({"ref": np.zeros((HORIZON, 6))}, r"expected \(3, 12\) = a state for each sample"),
    "feet": ({"feet": FEET[:3]}, r"feet has shape \(3, 3\)"),
    "x0": ({"x0": np.zeros(6)}, "x0 has shape"),
    "z": ({"z": np.zeros(3)}, "z has shape"),
}


@pytest.mark.parametrize("case", WRONG_SHAPES)
def test_a_schedule_longer_than_the_horizon_is_refused(law, case):
    options, words = WRONG_SHAPES[case]
    x0, ref, mask = np.zeros(12), np.zeros((HORIZON, 12)), np.ones((HORIZON, 4))
    given = {"x0": x0, "ref": ref, "feet": FEET, "mask": mask}
    assert law.solve(**given).status == 0
    for lost in (FEET * np.nan, FEET + 2e3):  # m: longer than any leg
        assert law.solve(**given | {"feet": lost}).status_text == "bad input"
    with pytest.raises(err.ShapeError, match=words):
        law.solve(**given | options)


WRONG = {
    "horizon": ({"horizon": 0}, "whole number"),
    "rho": ({"rho": 0.0}, "rho = 0.0"),
    "period": ({"period": -0.1}, "period"),
    "name": ({"name": "two words"}, "C identifier"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_is_refused(case):
    options, words = WRONG[case]
    with pytest.raises(err.ProblemError, match=words):
        rigid_body(**options)


def test_without_a_measurement_the_forces_stay_and_then_the_feet_carry_the_weight():
    law = rigid_body()
    x0, feet, ref, mask = trotting(law, np.random.default_rng(4)).values()
    u, z, status, *_ = law.function(x0, feet, ref, mask, law.controller.z0)
    assert int(status) == 0
    x0[0] = np.nan
    again, z, status, *_ = law.function(x0, feet, ref, mask, z)
    assert int(status) == 3
    np.testing.assert_array_equal(np.array(again), np.array(u))
    later = np.array(law.function(x0, feet, ref, mask, z)[0]).reshape(4, 3)
    np.testing.assert_allclose(later.sum(axis=0), [0, 0, 12.0 * 9.81])  # N
