"""A real-time iteration comes back from any content of its memory."""

import numpy as np
import pytest
from support.mpc_mechanisms import cart_pole
from support.problems import problem

from mbcasadi.description.status import Status
from mbcasadi.mpc import Bounded, optimal_control_problem, real_time_iteration, stage_symbols
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.solution import initial_guess
from mbcasadi.mpc.ocp.solver import ocp_solver
from mbcasadi.mpc.ocp.stage_bounds import StageBounds

HORIZON, PERIOD = 50, 0.04
UPRIGHT = np.array([0, np.pi, 0, 0])
TICKS, REACHED = 200, 0.05


@pytest.fixture(scope="module")
def swing_up():
    """Return an iteration that keeps a cart on its rail, and its reference."""
    bounds = [[-1.0, 1.0], [-np.inf, np.inf]]
    weights = {"Q": [0.1, 1, 0.01, 0.01], "R": 0.05, "Q_end": [200, 200, 20, 20]}
    ocp = problem(cart_pole(), HORIZON, PERIOD, q_bounds=bounds, **weights)
    goal = ocp.parameters(setpoint_q=UPRIGHT[:2])
    straight = np.linspace(np.zeros(4), UPRIGHT, HORIZON + 1)
    guess = initial_guess(ocp, straight, np.zeros((HORIZON, 1)))
    return real_time_iteration(ocp, ocp_solver(ocp, "ipopt").solve(np.zeros(4), goal, guess)), goal


def run(rti, goal, x, z, ticks=TICKS):
    """Return the last state and all statuses of the loop with its model."""
    statuses = []
    for _ in range(ticks):
        u, z, status, *_ = rti.function(x[:2], x[2:], goal.ravel(), z)
        statuses.append(int(status))
        x = rti.ocp.dynamics(x, u, goal[0]).full().ravel()
    return x, statuses


def distance(x):
    """Return the distance from a standing pole, whatever its turns."""
    return min(np.abs(x - UPRIGHT - [0, 2 * np.pi * n, 0, 0]).max() for n in range(-4, 5))


@pytest.mark.parametrize("scale", [0.3, 3.0, 30.0, 1e5])
@pytest.mark.parametrize("start", [np.zeros(4), UPRIGHT], ids=["hanging", "standing"])
def test_a_pole_is_swung_up_within_its_rail_from_any_guess(swing_up, scale, start):
    rti, goal = swing_up
    for seed in range(4):
        noise = np.random.default_rng(seed).standard_normal(rti.controller.z0.size)
        x, statuses = run(rti, goal, start, rti.controller.z0 + scale * noise)
        assert distance(x) < REACHED, seed
        assert np.all(np.array(statuses[-50:]) == Status.SOLVED), seed


def test_hard_rows_do_not_hold_a_guess_that_is_no_motion():
    own = stage_symbols(cart_pole())
    fast = Bounded(own.v[0], -3.0, 3.0, name="speed")
    ocp = optimal_control_problem(
        cart_pole(),
        15,
        PERIOD,
        [Cost(Q=1.0, R=0.05), fast, StageBounds(u=[[-10, 10]])],
        symbols=own,
    )
    rti, goal = real_time_iteration(ocp), ocp.parameters()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rti.controller.z0 + 10.0 ** rng.uniform(-1, 6) * rng.standard_normal(
            rti.controller.z0.size
        )
        x, statuses = run(rti, goal, np.array([0.1, 0.2, 0, 0]), z)
        assert np.abs(x).max() < REACHED, seed
        assert statuses[-1] == Status.SOLVED, seed


def test_a_plan_that_is_a_motion_is_followed_to_its_end_and_then_dropped(swing_up):
    rti, goal = swing_up
    planned = rti.trajectory(rti.controller.z0)[1][:, 0]
    z, beyond = rti.controller.z0, np.array([1.5, 0.3, 3.0, 0.0])  # off its rail: infeasible
    controls = []
    for _ in range(HORIZON + 2):
        u, z, status, *_ = rti.function(beyond[:2], beyond[2:], goal.ravel(), z)
        assert int(status) == Status.INFEASIBLE
        controls.append(float(u))
    limits = rti.ocp.u_bounds[0]
    np.testing.assert_allclose(controls[:HORIZON], np.clip(planned, *limits), atol=1e-9)
    X, _ = rti.trajectory(np.array(z))
    np.testing.assert_allclose(X, np.tile(beyond, (HORIZON + 1, 1)))
