"""Real-time iterations that wait for their controls to act, and those that bound their changes."""

import casadi as ca
import numpy as np
import pytest
from support.mpc_mechanisms import balance, coupled_carts, sliding_mass
from support.problems import problem

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import mpc

SAME_MOTION = 1e-9  # rounding of two orders of the same sums, over a hundred ticks


def loop(rti, x, ticks, delay, schedule=None):
    """Return states and controls of a plant whose actuator is late by `delay` ticks."""
    ocp, z, line = rti.ocp, rti.controller.z0, [np.zeros(rti.ocp.nu)] * delay
    states, controls = [x], []
    for k in range(ticks):
        p = ocp.parameters() if schedule is None else schedule(k + delay)
        u, z, status, *_ = rti.function(x[: x.size // 2], x[x.size // 2 :], p.ravel(), z)
        assert int(status) == 0, k
        line.append(np.array(u).ravel())
        acts = ocp.parameters() if schedule is None else schedule(k)
        x = ocp.dynamics(x, line.pop(0), acts[0]).full().ravel()
        states.append(x)
        controls.append(np.array(u).ravel())
    return np.array(states), np.array(controls)


@pytest.mark.parametrize("delay", [1, 3])
def test_a_late_loop_moves_as_one_in_time_that_begins_where_the_first_control_acts(delay):
    ocp, x0 = balance(), np.array([0.3, 0.12, 0.0, 0.0])
    late, _ = loop(mpc.real_time_iteration(ocp, delay=delay), x0, 60, delay)
    free = x0
    for k in range(delay):
        np.testing.assert_allclose(late[k], free, atol=SAME_MOTION)
        free = ocp.dynamics(free, 0, ocp.parameters()[0]).full().ravel()
    assert np.abs(free - x0).max() > 0.01
    timely, _ = loop(mpc.real_time_iteration(ocp), free, 60 - delay, 0)
    np.testing.assert_allclose(late[delay:], timely, atol=SAME_MOTION)
    assert np.abs(late[-1]).max() < 0.05


def test_a_law_that_does_not_know_of_its_delay_swings():
    ocp, x0 = balance(), np.array([0.0, 0.12, 0.0, 0.0])
    knows, _ = loop(mpc.real_time_iteration(ocp, delay=3), x0, 75, 3)
    ignores, _ = loop(mpc.real_time_iteration(ocp), x0, 75, 3)
    assert np.abs(knows[50:, 1]).max() < 0.02
    assert np.abs(ignores[50:, 1]).max() > 0.2


def test_pending_controls_act_on_the_rows_that_are_closed_when_they_act():
    """Two carts couple at a scheduled sample: the prediction over the delay knows it.

    They may couple from afar (`closing`), so that an error of the prediction shows.
    """
    system, delay = coupled_carts(), 2
    weights = {"Q": [1, 1, 0.1, 0.1], "R": 0.01, "Q_end": [10, 10, 1, 1]}
    ocp = problem(system, 8, 0.1, u_bounds=[[-3, 3]], closing=1.0, **weights)

    def schedule(k):
        closed = (np.arange(9) + k >= 5)[:, None]
        return ocp.parameters(mask=closed, setpoint_q=[0.4, 0.4])

    x0 = np.array([0.0, 0.0, 0.5, 0.0])
    late, _ = loop(mpc.real_time_iteration(ocp, delay=delay), x0, 12, delay, schedule)
    free = x0
    for k in range(delay):
        free = ocp.dynamics(free, 0, schedule(k)[0]).full().ravel()
    in_time = mpc.real_time_iteration(ocp)
    timely, _ = loop(in_time, free, 10, 0, lambda k: schedule(k + delay))
    np.testing.assert_allclose(late[delay:], timely, atol=SAME_MOTION)
    assert np.ptp(late[7:, 2] - late[7:, 3]) < SAME_MOTION < abs(late[4, 2] - late[4, 3])


def test_a_link_that_moves_by_the_clock_is_where_it_is_while_controls_are_pending():
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    phi, kinetic = q[0] - q[1] - 0.2 * ca.sin(6 * t), v[0] ** 2 / 2 + 3 * v[1] ** 2 / 2
    swing = mb.from_lagrangian(q, v, t=t, kinetic=kinetic, B=[[1], [0]], phi=phi)
    ocp = mpc.optimal_control_problem(
        swing, 8, 0.1, [mpc.Cost(Q=[1, 1, 0.1, 0.1], R=0.01, Q_end=1.0)]
    )

    def schedule(k):
        return ocp.parameters(t=0.1 * (k + np.arange(9))[:, None])

    x0 = np.array([0.1, 0.1, 1.2, 0.0])  # the link is closed, and opens by 1.2 m/s
    late, _ = loop(mpc.real_time_iteration(ocp, delay=2), x0, 12, 2, schedule)
    free = ocp.dynamics.mapaccum(2)(x0, ca.DM.zeros(1, 2), schedule(0)[:2].T).full()[:, -1]
    timely, _ = loop(mpc.real_time_iteration(ocp), free, 10, 0, lambda k: schedule(k + 2))
    np.testing.assert_allclose(late[2:], timely, atol=SAME_MOTION)
    link = 0.2 * np.sin(0.6 * np.arange(13))
    np.testing.assert_allclose(late[:, 0] - late[:, 1], link, atol=1e-9)
    assert np.abs(late[-1, :2]).max() < 0.3


@pytest.mark.parametrize("pending", [None, [[9.81]] * 2, [[0.0]] * 2])
def test_the_law_begins_with_what_holds_a_mass_unless_other_controls_are_pending(pending):
    q, v, weight = ca.SX.sym("q"), ca.SX.sym("v"), 9.81
    held = mb.from_lagrangian(q, v, kinetic=v**2 / 2, potential=weight * q, B=[[1]])
    s = mpc.stage_symbols(held)
    cost = ca.vertcat(10 * s.q, s.v, 0.1 * (s.u - weight))
    given = {"residual": cost, "terminal": cost[:2], "du_bounds": [[-2, 2]], "symbols": s}
    ocp = problem(held, 15, 0.05, **given)
    guess = mpc.initial_guess(ocp, np.tile([0.0, 0.0, weight], (16, 1)), np.full((15, 1), weight))
    rti, x = mpc.real_time_iteration(ocp, guess, delay=2, pending=pending), np.zeros(2)
    line, z, lowest = [weight] * 2, rti.controller.z0, 0.0
    for _ in range(20):
        u, z, status, *_ = rti.function(x[0], x[1], ocp.parameters().ravel(), z)
        assert int(status) == 0
        line.append(float(u))
        x = ocp.dynamics(np.append(x, 0.0), line.pop(0), ocp.parameters()[0]).full().ravel()[:2]
        lowest = min(lowest, x[0])
    assert lowest < -0.1 if pending == [[0.0]] * 2 else lowest > -SAME_MOTION


def test_what_a_delay_cannot_be_is_refused():
    ocp = mpc.optimal_control_problem(sliding_mass(), 5, 0.1, [mpc.Cost(R=1.0)])
    rti = mpc.real_time_iteration(ocp, delay=2)
    guess = mpc.initial_guess(ocp, np.zeros((6, 2)), np.zeros((5, 1)))
    wrong = r"pending has shape \(1, 1\), expected \(2, 1\)"
    with pytest.raises(err.ShapeError, match=wrong):
        rti.z_from(guess, pending=[[0.0]])
    with pytest.raises(err.ShapeError, match=wrong):
        mpc.real_time_iteration(ocp, guess, delay=2, pending=[[0.0]])
    longer = mpc.optimal_control_problem(sliding_mass(), 6, 0.1, [mpc.Cost(R=1.0)])
    with pytest.raises(
        err.ShapeError, match=r"guess has x \(6, 2\) and u \(5, 1\); expected \(7, 2"
    ):
        mpc.real_time_iteration(longer, guess)
