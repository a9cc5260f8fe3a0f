"""Delay and plan of linear MPC: pending controls are known, and what is planned happens."""

import numpy as np
import pytest
from support import linear_mpc_cases as cases

import mbcasadi.errors as err
from mbcasadi import mpc

OPTIONS = {"u_bounds": [[-1.0, 1.0]], "du_bounds": [[-0.4, 0.4]]}
ROUNDING = 1e-9


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_the_law_under_delay_is_the_law_of_the_state_at_which_it_acts(delay):
    """Bit for bit the same problem: the state carried by hand over the pending controls."""
    late = cases.controller_of(delay=delay, **OPTIONS)
    prompt = cases.controller_of(**OPTIONS)
    rng = np.random.default_rng(0)
    rows, differs = len(late.condensed.names), 0
    for _ in range(80):
        x0, ref = 0.3 * rng.standard_normal(2), 0.3 * rng.standard_normal(3)
        under_way = rng.uniform(-1, 1, delay)
        x = x0
        for u in under_way:
            x = cases.advance(x, u)
        given = np.concatenate([np.zeros(rows), under_way, late.controller.z0[rows + delay :]])
        u, z, status, *_ = cases.row_values(late.function(x0, ref, given))
        known = np.concatenate([np.zeros(rows), under_way[-1:], prompt.controller.z0[rows + 1 :]])
        expected = cases.row_values(prompt.function(x, ref, known))
        np.testing.assert_allclose(u, expected[0], atol=ROUNDING)
        assert status == expected[2]
        np.testing.assert_allclose(z[rows : rows + delay], [*under_way[1:], *u], atol=0)
        differs += abs(cases.row_values(prompt.function(x0, ref, known))[0] - u)[0] > 0.01
    assert differs > 5


def run(delay_of_law, delay_of_plant, ticks=150):
    """Return the states of a plant that gets every control late, and the law's statuses."""
    options = {"delay": delay_of_law, "u_bounds": [[-2.0, 2.0]]}
    law = mpc.lti_mpc(cases.MODEL, mpc.LinearOptions(20, [9.0, 0.1], 0.01, **options))
    x, z, line, states, bad = np.array([1.0, 0.0]), law.controller.z0, [0.0] * delay_of_plant, [], 0
    for _ in range(ticks):
        u, z, status, *_ = cases.row_values(law.function(x, np.zeros(3), z))
        bad += status != 0
        line.append(u[0])
        x = cases.advance(x, line.pop(0))
        states.append(x)
    return np.array(states), bad


def test_a_law_that_knows_its_delay_settles_and_one_that_does_not_swings():
    known, bad = run(4, 4)
    unknown, _ = run(0, 4)
    assert bad == 0
    assert np.ptp(known[-20:, 0]) < 1e-3
    assert np.ptp(unknown[-20:, 0]) > 0.05


def test_the_plan_is_what_happens_if_the_rest_is_done_as_planned():
    law = cases.controller_of(delay=2, **OPTIONS)
    rng, rows = np.random.default_rng(3), len(law.condensed.names)
    for _ in range(10):
        x0, ref, under_way = rng.standard_normal(2), np.zeros(3), rng.uniform(-0.5, 0.5, 2)
        z = np.concatenate([np.zeros(rows), under_way, law.controller.z0[rows + 2 :]])
        u, _, status, *_ = cases.row_values(law.function(x0, ref, z))
        x_plan, u_plan = (np.array(part) for part in law.controller.prediction(x0, ref, z))
        assert x_plan.shape == (2, cases.HORIZON + 1)
        assert status == 0
        np.testing.assert_allclose(u_plan[:, 0], u, atol=ROUNDING)
        x = x0
        for acts in under_way:
            x = cases.advance(x, acts)
        np.testing.assert_allclose(x_plan[:, 0], x, atol=ROUNDING)
        for k in range(cases.HORIZON):
            x = cases.advance(x, u_plan[:, k])
            np.testing.assert_allclose(x_plan[:, k + 1], x, atol=ROUNDING)


def test_a_plan_that_does_not_count_is_none():
    law = cases.controller_of(**OPTIONS)
    z = np.array(law.controller.z0)
    z[len(law.condensed.names)] = 9.0  # no control within the rate is within the bounds
    assert cases.row_values(law.function(np.zeros(2), np.zeros(3), z))[2] == 2
    x, u = law.controller.prediction(np.zeros(2), np.zeros(3), z)
    assert np.all(np.isnan(np.array(x)))
    assert np.all(np.isnan(np.array(u)))


def test_offset_free_under_delay_leaves_no_offset():
    """The estimate runs on the control that acts, not on the one that was just asked for."""
    options = cases.options_of(u_bounds=[[-2.0, 2.0]], delay=2)
    law = mpc.offset_free_lti(cases.MODEL, options, [[1.0, 0.0]])
    x, z, line = np.zeros(2), law.controller.z0, [0.0, 0.0]
    worst = 0.0
    for k in range(400):
        u, z, status, *_ = cases.row_values(law.function(x, law.reference(x=[0.5, 0.0]), z))
        assert status == 0
        line.append(u[0])
        x = cases.advance(x, line.pop(0) + 0.4)
        worst = max(worst, abs(x[0] - 0.5)) if k > 250 else worst
    assert worst < 1e-6
    assert law.controller.delay == 2
    assert law.controller.prediction(x, law.reference(x=[0.5, 0.0]), z)[0].shape == (
        2,
        cases.HORIZON + 1,
    )


def slow_crank():
    """Return a four-bar and its MPC with a soft bound of the crank's speed."""
    linear = cases.at_rest("four_bar")
    row = mpc.deviation_output(linear, "crank_speed", np.eye(6)[3], -3.0, 3.0, linear_penalty=100.0)
    options = {"outputs": [row], "u_bounds": [[-0.5, 0.5]], "delay": 1}
    return linear.system, linear, cases.mechanism_mpc(linear, 15, **options)


def test_the_plan_of_a_mechanism_starts_at_the_state_and_stays_on_its_manifold():
    system, linear, law = slow_crank()
    q, v = linear.state(0.05 * np.ones(linear.nx))
    ref = cases.held(law, linear)
    z = np.array(law.controller.z0)
    x, u = (np.array(part) for part in law.controller.prediction(q, v, ref, z))
    assert x.shape == (system.nq + system.nv, 16)
    assert law.controller.prediction_rows[0].startswith("q.")
    assert len(law.controller.prediction_rows) == len(x)
    assert np.abs(u[:, 0] - cases.row_values(law.function(q, v, ref, z))[0]).max() < ROUNDING
    gaps = [np.abs(np.array(system.constraint(column[: system.nq]))).max() for column in x.T]
    assert max(gaps) < 0.05 * np.abs(x[: system.nq] - linear.q[:, None]).max()
    # One tick of the equilibrium's control, nearly none of motion: the state it started from.
    assert np.abs(x[: system.nq, 0] - q).max() < 2 * law.controller.period * np.abs(v).max()


def test_what_a_mechanism_keeps_between_bounds_is_given_to_reports():
    _, linear, law = slow_crank()
    limits = law.controller.limits
    v = linear.to_dv @ np.ones(linear.nx)
    value = cases.row_values([limits.value(linear.q, v, linear.u, linear.u)])[0]
    np.testing.assert_allclose(value, v[:1], atol=ROUNDING)
    assert limits.signal.components == ("crank_speed",)
    assert limits.soft == (True,)


def test_a_model_that_varies_takes_no_delay():
    A, B = (
        np.tile(cases.MODEL.A, (cases.HORIZON, 1, 1)),
        np.tile(cases.MODEL.B, (cases.HORIZON, 1, 1)),
    )
    with pytest.raises(err.ProblemError, match="expected a constant model"):
        mpc.lti_mpc(mpc.LinearModel.of(A, B, cases.PERIOD), cases.options_of(delay=1))
