"""Delay and plan of linear MPC: pending controls are known, and what is planned happens."""

import numpy as np
import pytest
from support.linear_mpc_cases import HORIZON, MODEL, PERIOD, controller_of

import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.regulators import equilibrium, linearize
from mbcasadi.mpc import (
    LinearModel,
    LinearOptions,
    deviation_output,
    linear_mpc,
    lti_mpc,
    offset_free_lti,
)
from mbcasadi.system import read_mjcf

OPTIONS = {"u_bounds": [[-1.0, 1.0]], "du_bounds": [[-0.4, 0.4]]}
ROUNDING = 1e-9


def advance(x, u):
    return MODEL.A @ x + MODEL.B @ np.atleast_1d(u) + MODEL.drift


def call_by_name(function, *args):
    return [np.array(out).ravel() for out in function(*args)]


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_the_law_under_delay_is_the_law_of_the_state_at_which_it_acts(delay):
    """Bit for bit the same problem: the state carried by hand over the pending controls."""
    late = controller_of(delay=delay, **OPTIONS)
    prompt = controller_of(**OPTIONS)
    rng = np.random.default_rng(0)
    rows, differs = len(late.condensed.names), 0
    for _ in range(80):
        x0, ref = 0.3 * rng.standard_normal(2), 0.3 * rng.standard_normal(3)
        under_way = rng.uniform(-1, 1, delay)
        x = x0
        for u in under_way:
            x = advance(x, u)
        given = np.concatenate([np.zeros(rows), under_way, late.controller.z0[rows + delay :]])
        u, z, status, *_ = call_by_name(late.function, x0, ref, given)
        known = np.concatenate([np.zeros(rows), under_way[-1:], prompt.controller.z0[rows + 1 :]])
        expected = call_by_name(prompt.function, x, ref, known)
        np.testing.assert_allclose(u, expected[0], atol=ROUNDING)
        assert status == expected[2]
        np.testing.assert_allclose(z[rows : rows + delay], [*under_way[1:], *u], atol=0)
        differs += abs(call_by_name(prompt.function, x0, ref, known)[0] - u)[0] > 0.01
    assert differs > 5


def run(delay_of_law, delay_of_plant, ticks=150):
    """Return the states of a plant that gets every control late, and the law's statuses."""
    mpc = lti_mpc(
        MODEL, LinearOptions(20, [9.0, 0.1], 0.01, delay=delay_of_law, u_bounds=[[-2.0, 2.0]])
    )
    x, z, line, states, bad = np.array([1.0, 0.0]), mpc.controller.z0, [0.0] * delay_of_plant, [], 0
    for _ in range(ticks):
        u, z, status, *_ = call_by_name(mpc.function, x, np.zeros(3), z)
        bad += status != 0
        line.append(u[0])
        x = advance(x, line.pop(0))
        states.append(x)
    return np.array(states), bad


def test_a_law_that_knows_its_delay_settles_and_one_that_does_not_swings():
    known, bad = run(4, 4)
    unknown, _ = run(0, 4)
    assert bad == 0
    assert np.ptp(known[-20:, 0]) < 1e-3
    assert np.ptp(unknown[-20:, 0]) > 0.05


def test_the_plan_is_what_happens_if_the_rest_is_done_as_planned():
    mpc = controller_of(delay=2, **OPTIONS)
    rng, rows = np.random.default_rng(3), len(mpc.condensed.names)
    for _ in range(10):
        x0, ref, under_way = rng.standard_normal(2), np.zeros(3), rng.uniform(-0.5, 0.5, 2)
        z = np.concatenate([np.zeros(rows), under_way, mpc.controller.z0[rows + 2 :]])
        u, _, status, *_ = call_by_name(mpc.function, x0, ref, z)
        x_plan, u_plan = (np.array(part) for part in mpc.controller.prediction(x0, ref, z))
        assert x_plan.shape == (2, HORIZON + 1)
        assert status == 0
        np.testing.assert_allclose(u_plan[:, 0], u, atol=ROUNDING)
        x = x0
        for acts in under_way:
            x = advance(x, acts)
        np.testing.assert_allclose(x_plan[:, 0], x, atol=ROUNDING)
        for k in range(HORIZON):
            x = advance(x, u_plan[:, k])
            np.testing.assert_allclose(x_plan[:, k + 1], x, atol=ROUNDING)


def test_a_plan_that_does_not_count_is_none():
    mpc = controller_of(**OPTIONS)
    z = np.array(mpc.controller.z0)
    z[len(mpc.condensed.names)] = 9.0  # no control within the rate is within the bounds
    assert call_by_name(mpc.function, np.zeros(2), np.zeros(3), z)[2] == 2
    x, u = mpc.controller.prediction(np.zeros(2), np.zeros(3), z)
    assert np.all(np.isnan(np.array(x)))
    assert np.all(np.isnan(np.array(u)))


def test_offset_free_under_delay_leaves_no_offset():
    """The estimate runs on the control that acts, not on the one that was just asked for."""
    mpc = offset_free_lti(
        MODEL,
        LinearOptions(HORIZON, [2.0, 0.1], 0.3, u_bounds=[[-2.0, 2.0]], delay=2),
        [[1.0, 0.0]],
    )
    x, z, line = np.zeros(2), mpc.controller.z0, [0.0, 0.0]
    worst = 0.0
    for k in range(400):
        u, z, status, *_ = call_by_name(mpc.function, x, mpc.reference(x=[0.5, 0.0]), z)
        assert status == 0
        line.append(u[0])
        x = advance(x, line.pop(0) + 0.4)
        worst = max(worst, abs(x[0] - 0.5)) if k > 250 else worst
    assert worst < 1e-6
    assert mpc.controller.delay == 2
    assert mpc.controller.prediction(x, mpc.reference(x=[0.5, 0.0]), z)[0].shape == (2, HORIZON + 1)


@pytest.fixture(scope="module")
def four_bar():
    system = read_mjcf(models.path("four_bar"))
    held = equilibrium(system)
    linear = linearize(system, held)
    row = deviation_output(linear, "crank_speed", np.eye(6)[3], -3.0, 3.0, linear_penalty=100.0)
    options = {"outputs": [row], "u_bounds": [[-0.5, 0.5]], "delay": 1}
    return (
        system,
        linear,
        linear_mpc(linear, LinearOptions(15, np.repeat([10.0, 0.01], 3), 1.0, **options)),
    )


def test_the_plan_of_a_mechanism_starts_at_the_state_and_stays_on_its_manifold(four_bar):
    system, linear, mpc = four_bar
    q, v = linear.state(0.05 * np.ones(linear.nx))
    ref = mpc.reference(setpoint_q=linear.q, setpoint_u=linear.u)
    z = np.array(mpc.controller.z0)
    x, u = (np.array(part) for part in mpc.controller.prediction(q, v, ref, z))
    assert x.shape == (system.nq + system.nv, 16)
    assert mpc.controller.prediction_rows[0].startswith("q.")
    assert len(mpc.controller.prediction_rows) == len(x)
    assert np.abs(u[:, 0] - call_by_name(mpc.function, q, v, ref, z)[0]).max() < ROUNDING
    gaps = [np.abs(np.array(system.constraint(column[: system.nq]))).max() for column in x.T]
    assert max(gaps) < 0.05 * np.abs(x[: system.nq] - linear.q[:, None]).max()
    # One tick of the equilibrium's control, nearly none of motion: the state it started from.
    assert np.abs(x[: system.nq, 0] - q).max() < 2 * mpc.controller.period * np.abs(v).max()


def test_what_a_mechanism_keeps_between_bounds_is_given_to_reports(four_bar):
    _, linear, mpc = four_bar
    limits = mpc.controller.limits
    v = linear.to_dv @ np.ones(linear.nx)
    value = call_by_name(lambda *args: [limits.value(*args)], linear.q, v, linear.u, linear.u)[0]
    np.testing.assert_allclose(value, v[:1], atol=ROUNDING)
    assert limits.signal.components == ("crank_speed",)
    assert limits.soft == (True,)


@pytest.mark.parametrize("delay", [-1, 0.5, np.nan])
def test_a_delay_that_is_no_number_of_samples_is_refused(delay):
    with pytest.raises(err.ProblemError, match="delay = "):
        controller_of(delay=delay)


def test_a_model_that_varies_takes_no_delay():
    A, B = np.tile(MODEL.A, (HORIZON, 1, 1)), np.tile(MODEL.B, (HORIZON, 1, 1))
    with pytest.raises(err.ProblemError, match="expected a constant model"):
        lti_mpc(LinearModel.of(A, B, PERIOD), LinearOptions(HORIZON, [2.0, 0.1], 0.3, delay=1))
