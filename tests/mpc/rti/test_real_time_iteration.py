"""Real-time iterations: an independent QP, the optimum of the whole problem, closed loop."""

import numpy as np
import pytest
from support.linear_mpc_cases import row_values
from support.mpc_mechanisms import UPRIGHT, cart_pole, sliding_mass, swing_up
from support.peer_qp import MassOnRail, solve_qp
from support.problems import problem

import mbcasadi.errors as err
from mbcasadi import mpc

SAME_OPTIMUM = 5e-6  # ipopt ends at residuals of 1e-9, in a valley as flat as R = 0.05 beside 200
SAME_QP = 1e-8
LIMIT = 12.0


def tick(law, x, ref, z):
    return [np.array(out).ravel() for out in law(x[:2], x[2:], ref, z)]


def solved(x0=None, begin=None, **given):
    """Return the problem, its setpoint and its solution from a state, at first at rest below."""
    ocp, p, straight = swing_up(**given)
    x0 = np.zeros(4) if x0 is None else x0
    solution = mpc.ocp_solver(ocp, "ipopt").solve(x0, p, begin or straight)
    assert solution.solved, solution.in_words
    return ocp, p, solution


@pytest.mark.parametrize("rail", [np.inf, 0.5])
@pytest.mark.every(2)
def test_ticks_at_one_state_end_at_the_optimum_of_the_whole_problem(rail):
    x0 = np.array([0.02, 0.05, 0.0, 0.0])
    ocp, p, begin = solved(rail=rail)
    best = solved(x0, begin, rail=rail)[2]
    rti = mpc.real_time_iteration(ocp, begin, shift=False)
    z, misses = rti.controller.z0, []
    for _ in range(100):
        _, z, status, *_ = tick(rti.function, x0, p.ravel(), z)
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
    N, x0 = MassOnRail.N, [1.5, 0.4]
    bounds = {"u_bounds": [[-4, 3]], "v_bounds": [[-1.1, 9]]}
    ocp = problem(sliding_mass(), N, MassOnRail.T, **MassOnRail.weights, **bounds)
    peer = MassOnRail(x0, goal=0.2)
    speed = peer.G[1:, 1], -1.1 - peer.free[1:, 1], np.full(N, np.inf)
    expected, _ = solve_qp(peer.H, peer.g, peer.forces(-4, 3), speed)
    assert np.isclose(expected, -4).any()
    rng = np.random.default_rng(0)
    guess = mpc.initial_guess(ocp, rng.standard_normal((N + 1, 2)), rng.standard_normal((N, 1)))
    rti = mpc.real_time_iteration(ocp, guess, shift=False)
    ref = ocp.parameters(setpoint_q=0.2).ravel()
    u, z, status, *_ = row_values(rti.function(*x0, ref, rti.z_from(guess)))
    assert status == 0
    x, controls = rti.trajectory(z)
    np.testing.assert_allclose(controls[:, 0], expected, atol=SAME_QP)
    np.testing.assert_allclose(u, expected[:1], atol=SAME_QP)
    assert x[:, 1].min() == pytest.approx(-1.1, abs=SAME_QP)


@pytest.mark.long
def test_a_cart_pole_swings_up_and_stays():
    ocp, p, best = solved()
    rti = mpc.real_time_iteration(ocp, best)
    x, z, ref, controls = np.zeros(4), rti.controller.z0, p.ravel(), []
    for k in range(250):
        if k == 150:
            np.testing.assert_allclose(x, UPRIGHT, atol=0.02)
            x = x + np.array([0, 0, 0.3, 0.6])  # pushed
        u, z, status, *_ = tick(rti.function, x, ref, z)
        assert status == 0, k
        controls.append(u[0])
        x = ocp.dynamics(x, u, p[0]).full().ravel()
    assert np.abs(controls).max() == pytest.approx(LIMIT)
    assert np.abs(x - UPRIGHT).max() < 0.02
    u = tick(rti.function, x, ref, z)[0]
    straight = mpc.initial_guess(ocp, np.linspace(x, UPRIGHT, 51), np.zeros((50, 1)))
    assert abs(solved(x, straight)[2].u[0, 0] - u) < SAME_OPTIMUM


def test_a_state_outside_its_bounds_is_infeasible_and_gives_the_plan():
    ocp, p, _ = swing_up(rail=0.5)
    plan = mpc.initial_guess(ocp, np.zeros((51, 4)), np.zeros((50, 1)))
    # Without a plan that was given or solved the motor brakes what moves: 20 1/s, at its limit.
    for guess, expected in ((plan, 0.0), (None, -LIMIT)):
        rti = mpc.real_time_iteration(ocp, guess)
        x = np.array([0.9, 0, 2.0, 0])
        u, z, status, *_ = tick(rti.function, x, p.ravel(), rti.controller.z0)
        assert status == 2
        assert u == expected
        assert np.all(np.isfinite(z))


def test_what_makes_no_sense_is_refused():
    fine = mpc.optimal_control_problem(cart_pole(), 5, 0.1, [mpc.Cost(R=1.0)])
    with pytest.raises(err.ProblemError, match="C identifier"):
        mpc.real_time_iteration(fine, name="two words")
    with pytest.raises(err.ProblemError, match="tolerance"):
        mpc.real_time_iteration(fine, tolerance=-1.0)
    with pytest.raises(err.SolverError, match="solver 'magic'"):
        mpc.real_time_iteration(fine, solver="magic")
