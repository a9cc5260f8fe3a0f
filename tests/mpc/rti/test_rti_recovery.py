"""A real-time iteration comes back from any content of its memory, and says where it fails."""

import casadi as ca
import numpy as np
import pytest
from support import mpc_mechanisms as mechanisms
from support.mpc_mechanisms import UPRIGHT, cart_pole
from support.problems import problem

from mbcasadi import mpc
from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.description.status import Status

HORIZON = 50
TICKS, REACHED = 200, 0.05


@pytest.fixture(scope="module")
def swing_up():
    """Return an iteration that keeps a cart on its rail, and its reference."""
    ocp, goal, guess = mechanisms.swing_up(rail=1.0)
    return mpc.real_time_iteration(
        ocp, mpc.ocp_solver(ocp, "ipopt").solve(np.zeros(4), goal, guess)
    ), goal


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
@pytest.mark.every(5)
def test_a_pole_is_swung_up_within_its_rail_from_any_guess(swing_up, scale, start):
    rti, goal = swing_up
    for seed in range(2):
        noise = np.random.default_rng(seed).standard_normal(rti.controller.z0.size)
        x, statuses = run(rti, goal, start, rti.controller.z0 + scale * noise)
        assert distance(x) < REACHED, seed
        assert np.all(np.array(statuses[-50:]) == Status.SOLVED), seed


@pytest.mark.long
def test_hard_rows_do_not_hold_a_guess_that_is_no_motion():
    own = mpc.stage_symbols(cart_pole())
    fast = mpc.Bounded(own.v[0], -3.0, 3.0, name="speed")
    given = {"path": [fast], "u_bounds": [[-10, 10]], "symbols": own}
    ocp = problem(cart_pole(), 15, 0.04, Q=1.0, R=0.05, **given)
    rti, goal = mpc.real_time_iteration(ocp), ocp.parameters()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        noise = 10.0 ** rng.uniform(-1, 6) * rng.standard_normal(rti.controller.z0.size)
        z = rti.controller.z0 + noise
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


def row_of_speed(place, **price):
    s = mpc.stage_symbols(cart_pole())
    return {"symbols": s, place: [mpc.Bounded(s.v[0], -1, 1, **price)]}


ROWS = {
    "controls alone": ({}, Status.FAILED),
    "soft path": (row_of_speed("path", linear_penalty=1.0), Status.FAILED),
    "soft end": (row_of_speed("end", quadratic_penalty=1.0), Status.FAILED),
    "hard path": (row_of_speed("path"), Status.INFEASIBLE),
    "hard end": (row_of_speed("end"), Status.INFEASIBLE),
    "states": ({"v_bounds": [[-1, 1], [-1, 1]]}, Status.INFEASIBLE),
}


@pytest.mark.parametrize("kind", ROWS)
def test_only_hard_rows_beyond_controls_can_be_infeasible(kind):
    """A claim that there is no answer is a failure where one always exists. The guess goes."""
    given, expected = ROWS[kind]
    ocp = problem(cart_pole(), 8, 0.04, Q=1.0, R=0.05, **given)
    rti, wild = mpc.real_time_iteration(ocp, shift=False), np.random.default_rng(0)
    z, stages = rti.controller.z0.copy(), rti.controller.stages
    kept = slice(sum(rti.memory.sizes[:2]))
    z[kept] += 5.0 * wild.standard_normal(z[kept].size)
    known = (np.array([0.1, 0.2]), np.zeros(2), ocp.parameters().ravel(), z)
    prepared = stages.prepare(*known[2:])[0]
    none = ca.DM.zeros(stages.m)
    answer = (ca.DM.zeros(0), 1e4 * np.ones(stages.n), none, none, SolverFlag.INFEASIBLE)
    _, z_next, status, _, residual = stages.finish(*known, prepared, *answer)
    assert float(residual[0]) > 1e-3
    assert int(status) == expected
    X, U = rti.trajectory(np.array(z_next))
    np.testing.assert_array_equal(X, np.tile([0.1, 0.2, 0, 0], (9, 1)))  # held where it is
    np.testing.assert_array_equal(U, np.zeros((8, 1)))
    names = rti.controller.inputs[3].components
    rows = [i for i, name in enumerate(names) if name.startswith("active.")]
    for begun in (rti.controller.z0, np.array(z_next).ravel()):
        held = [names[i] for i in rows if begun[i]]
        assert held == [names[i] for i in rows if "slack" in names[i]]  # no slack
    assert bool(held) == (kind == "soft path")  # the other soft row has slacks of either sign
