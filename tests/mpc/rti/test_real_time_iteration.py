"""Real-time iterations: an independent QP, the optimum of the whole problem, closed loop, the C."""

import numpy as np
import pytest
import quadprog
from support.mpc_mechanisms import cart_pole, sliding_mass
from support.problems import problem

import mbcasadi.errors as err
from mbcasadi.codegen import export_c
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.make_problem import optimal_control_problem
from mbcasadi.mpc.ocp.solution import initial_guess
from mbcasadi.mpc.ocp.solver import ocp_solver
from mbcasadi.mpc.ocp.stage_bounds import StageBounds
from mbcasadi.mpc.rti.controller import real_time_iteration

SAME_OPTIMUM = 5e-6  # ipopt ends at residuals of 1e-9, in a valley as flat as R = 0.05 beside 200
SAME_QP = 1e-8
SAME_C = 1e-9
UPRIGHT = np.array([0, np.pi, 0, 0])
HORIZON, PERIOD, LIMIT = 50, 0.04, 12.0


def swing_up(**bounds):
    return problem(
        cart_pole(),
        HORIZON,
        PERIOD,
        Q=[0.1, 1, 0.01, 0.01],
        R=0.05,
        Q_end=[200, 200, 20, 20],
        **bounds,
    )


def solve_swing_up(ocp, x0, guess=None):
    straight = initial_guess(ocp, np.linspace(x0, UPRIGHT, HORIZON + 1), np.zeros((HORIZON, 1)))
    solution = ocp_solver(ocp, "ipopt").solve(x0, setpoint_of(ocp), guess or straight)
    assert solution.solved, solution.in_words
    return solution


def setpoint_of(ocp):
    return ocp.parameters(setpoint_q=UPRIGHT[:2])


def tick(law, x, ref, z):
    return [np.array(out).ravel() for out in law(x[:2], x[2:], ref, z)]


@pytest.fixture(scope="module")
def hanging():
    """Return the problem, its solution from rest below, and the iteration that begins with it."""
    ocp = swing_up()
    best = solve_swing_up(ocp, np.zeros(4))
    return ocp, best, real_time_iteration(ocp, best)


@pytest.mark.parametrize("rail", [np.inf, 0.5])
def test_ticks_at_one_state_end_at_the_optimum_of_the_whole_problem(rail):
    ocp = swing_up(q_bounds=[[-rail, rail], [-np.inf, np.inf]])
    begin, x0 = solve_swing_up(ocp, np.zeros(4)), np.array([0.02, 0.05, 0.0, 0.0])
    best = solve_swing_up(ocp, x0, begin)
    rti = real_time_iteration(ocp, begin, shift=False)
    z, misses = rti.controller.z0, []
    for _ in range(100):
        _, z, status, *_ = tick(rti.function, x0, setpoint_of(ocp).ravel(), z)
        assert status == 0
        misses.append(np.abs(rti.trajectory(z)[0] - best.x).max())
    assert misses[0] > 1e3 * SAME_OPTIMUM
    assert misses[-1] < SAME_OPTIMUM
    x, u = rti.trajectory(z)
    np.testing.assert_allclose(u, best.u, atol=100 * SAME_OPTIMUM)  # the flat direction of the cost
    assert np.abs(u).max() == pytest.approx(LIMIT, abs=SAME_OPTIMUM)
    if np.isfinite(rail):
        assert np.abs(x[:, 0]).max() == pytest.approx(rail, abs=SAME_OPTIMUM)


def test_one_tick_solves_a_quadratic_problem():
    N, T, m = 12, 0.1, 2.0
    ocp = optimal_control_problem(
        sliding_mass(m),
        N,
        T,
        [Cost(Q=[3, 0.1], R=0.2, Q_end=[10, 1]), StageBounds(u=[[-4, 3]], v=[[-1.1, 9]])],
    )
    x0, target = np.array([1.5, 0.4]), np.array([0.2, 0.0])
    A, B = np.array([[1, T], [0, 1]]), np.array([T**2 / 2, T]) / m
    G, free = np.zeros((N + 1, 2, N)), np.zeros((N + 1, 2))
    free[0] = x0
    for k in range(N):
        G[k + 1], free[k + 1] = A @ G[k], A @ free[k]
        G[k + 1][:, k] += B
    weights = [T * np.diag([3, 0.1])] * N + [np.diag([10.0, 1.0])]
    H = sum(g.T @ W @ g for g, W in zip(G, weights, strict=True)) + 0.2 * T * np.eye(N)
    c = sum(g.T @ W @ (f - target) for g, W, f in zip(G, weights, free, strict=True))
    rows = np.hstack([np.eye(N), -np.eye(N), G[1:, 1].T])
    sides = np.concatenate([np.repeat([-4.0, -3.0], N), -1.1 - free[1:, 1]])
    expected = quadprog.solve_qp(H, -c, rows, sides)[0]
    assert np.isclose(expected, -4).any()
    rng = np.random.default_rng(0)
    guess = initial_guess(ocp, rng.standard_normal((N + 1, 2)), rng.standard_normal((N, 1)))
    rti = real_time_iteration(ocp, guess, shift=False)
    ref = ocp.parameters(setpoint_q=0.2).ravel()
    u, z, status, *_ = (np.array(o).ravel() for o in rti.function(1.5, 0.4, ref, rti.z_from(guess)))
    assert status == 0
    x, controls = rti.trajectory(z)
    np.testing.assert_allclose(controls[:, 0], expected, atol=SAME_QP)
    np.testing.assert_allclose(u, expected[:1], atol=SAME_QP)
    assert x[:, 1].min() == pytest.approx(-1.1, abs=SAME_QP)


def test_a_cart_pole_swings_up_and_stays(hanging):
    ocp, _, rti = hanging
    x, z, ref, controls = np.zeros(4), rti.controller.z0, setpoint_of(ocp).ravel(), []
    for k in range(250):
        if k == 150:
            np.testing.assert_allclose(x, UPRIGHT, atol=0.02)
            x = x + np.array([0, 0, 0.3, 0.6])  # pushed
        u, z, status, *_ = tick(rti.function, x, ref, z)
        assert status == 0, k
        controls.append(u[0])
        x = ocp.dynamics(x, u, setpoint_of(ocp)[0]).full().ravel()
    assert np.abs(controls).max() == pytest.approx(LIMIT)
    assert np.abs(x - UPRIGHT).max() < 0.02
    assert abs(solve_swing_up(ocp, x).u[0, 0] - tick(rti.function, x, ref, z)[0][0]) < SAME_OPTIMUM


def test_the_c_equals_the_function_and_bears_bad_input(hanging, tmp_path):
    ocp, _, rti = hanging
    law = export_c(rti, tmp_path / "c").load(flags=("-O0",))
    rng, x, z, ref = (
        np.random.default_rng(0),
        np.zeros(4),
        rti.controller.z0,
        setpoint_of(ocp).ravel(),
    )
    for k in range(40):
        one, other = tick(rti.function, x, ref, z), tick(law, x, ref, z)
        np.testing.assert_allclose(other[0], one[0], atol=SAME_C)
        trajectory = rti.ocp.nx * (HORIZON + 1) + HORIZON
        np.testing.assert_allclose(other[1][:trajectory], one[1][:trajectory], atol=SAME_C)
        assert one[2] == other[2] == 0
        bad = [x, ref, z]
        bad[k % 3] = np.where(np.arange(bad[k % 3].size) == 1, [np.nan, np.inf][k % 2], bad[k % 3])
        for answer in (tick(rti.function, *bad), tick(law, *bad)):
            assert np.all(np.isfinite(answer[0]))
            assert np.abs(answer[0]).max() <= LIMIT
            assert np.all(np.isfinite(answer[1]))
            assert k % 3 == 2 or answer[2] == 3
        z = other[1]
        x = ocp.dynamics(
            x, one[0], setpoint_of(ocp)[0]
        ).full().ravel() + 1e-3 * rng.standard_normal(4)


def test_a_state_outside_its_bounds_is_infeasible_and_gives_the_plan():
    ocp = swing_up(q_bounds=[[-0.5, 0.5], [-np.inf, np.inf]])
    plan = initial_guess(ocp, np.zeros((HORIZON + 1, 4)), np.zeros((HORIZON, 1)))
    # Without a plan that was given or solved the motor brakes what moves: 20 1/s, at its limit.
    for guess, expected in ((plan, 0.0), (None, -LIMIT)):
        rti = real_time_iteration(ocp, guess)
        x = np.array([0.9, 0, 2.0, 0])
        u, z, status, *_ = tick(rti.function, x, setpoint_of(ocp).ravel(), rti.controller.z0)
        assert status == 2
        assert u == expected
        assert np.all(np.isfinite(z))


def test_a_wrong_solution_of_the_solver_is_not_accepted(hanging):
    ocp, _, rti = hanging
    stages = rti.controller.stages
    x = np.array([0.1, 0.2, 0, 0])
    given = (x[:2], x[2:], setpoint_of(ocp).ravel(), rti.controller.z0)
    prepared = stages.prepare(*given[2:])[0]
    carry = stages.build(*given, prepared)[3]
    m, n = stages.m, stages.n
    for answer, claimed in ((np.ones(n), 1), (np.full(n, np.nan), 1), (1e3 * np.ones(n), 0)):
        actual = (prepared, carry, answer, np.zeros(m), np.zeros(m), claimed)
        u, z, status, *_ = stages.finish(*given, *actual)
        assert float(status) > 0
        assert abs(float(u)) <= LIMIT
        assert np.all(np.isfinite(np.array(z)))


def test_what_makes_no_sense_is_refused():
    fine = optimal_control_problem(cart_pole(), 5, 0.1, [Cost(R=1.0)])
    with pytest.raises(err.ProblemError, match="C identifier"):
        real_time_iteration(fine, name="two words")
    with pytest.raises(err.ProblemError, match="tolerance"):
        real_time_iteration(fine, tolerance=-1.0)
    with pytest.raises(err.SolverError, match="solver 'magic'"):
        real_time_iteration(fine, solver="magic")
