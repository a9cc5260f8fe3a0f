"""Gains that change from tick to tick: horizons, motions, tables in the generated C."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.lqr_problems import at_rest, in_another_basis, states_near, weights
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control.laws import LawOptions, within_limits
from mbcasadi.control.regulators import (
    discretize,
    equilibrium,
    finite_horizon_gains,
    finite_horizon_lqr,
    gain_in_full_coordinates,
    linearize_along,
    lqr,
    lqr_gain,
    trajectory_gains,
    trajectory_lqr,
)
from mbcasadi.simulation import SampledLaw
from mbcasadi.validation import ScenarioOptions, validate

ROUNDING = 1e-12
PERIOD, TICKS = 4e-3, 300  # s
STATES = 1000
DEVIATION = 0.05  # rad, of the pendulum at the start
FALLEN = 0.5  # rad
NAME = "pendulum_on_four_bar"


@cache
def motion():
    """The pendulum is carried 0.5 rad of the crank back to the middle; u is held from each row."""
    linear = at_rest(NAME)
    system = linear.system
    start = equilibrium(system, linear.q + np.array([0.5, 0, 0, 0]), held=["crank"])
    law = lqr(linear, *weights(linear), options=LawOptions(period=PERIOD))
    times = PERIOD * np.arange(TICKS + 1)
    path = mb.simulate(system, start.q, np.zeros(system.nv), times[-1], controller=law, times=times)
    return path, np.vstack([path.u[1:], path.u[-1:]])


@cache
def along():
    path, u = motion()
    return linearize_along(at_rest(NAME).system, path.q, path.v, u)


def test_with_its_own_cost_to_go_at_the_end_a_horizon_has_the_endless_gain():
    linear = at_rest("planar_biped")
    Q, R = weights(linear)
    endless = lqr_gain(linear, Q, R, period=PERIOD).K
    for K in finite_horizon_gains(linear, Q, R, 20, period=PERIOD):
        assert_allclose(K, endless, atol=1e-9 * np.abs(endless).max())


def test_the_gains_along_a_motion_that_rests_are_those_of_a_horizon():
    linear = at_rest(NAME)
    Q, R = weights(linear)
    q, v, u = (np.tile(x, (21, 1)) for x in (linear.q, linear.v, linear.u))
    resting = linearize_along(linear.system, q, v, u)
    gains = trajectory_gains(resting, Q, R, Q_end=0.1 * Q, period=PERIOD)
    expected = finite_horizon_gains(linear, Q, R, 20, Q_end=0.1 * Q, period=PERIOD)
    for one, K, other in zip(resting, gains, expected, strict=False):
        gain = gain_in_full_coordinates(linear, other)
        assert_allclose(gain_in_full_coordinates(one, K), gain, atol=1e-8 * np.abs(gain).max())


def test_the_cost_to_go_of_what_is_held_counts_in_any_basis():
    linear = at_rest(NAME)
    Q, R = weights(linear)
    q, v, u = (np.tile(x, (6, 1)) for x in (linear.q, linear.v, linear.u))
    resting = linearize_along(linear.system, q, v, u)
    endless = gain_in_full_coordinates(linear, lqr_gain(linear, Q, R, period=PERIOD).K)
    for hold in (None, linear, in_another_basis(linear)):
        K = trajectory_gains(resting, Q, R, hold=hold, period=PERIOD)[0]
        gain = gain_in_full_coordinates(resting[0], K)
        assert_allclose(gain, endless, atol=1e-8 * np.abs(endless).max())


@cache
def law_along():
    linear = at_rest(NAME)
    return trajectory_lqr(along(), *weights(linear), hold=linear, options=LawOptions(period=PERIOD))


def moving_samples():
    path, u = motion()
    return path.q[20:22], path.v[20:22], u[20:22]


@pytest.mark.long
def test_the_motion_changes_the_gain():
    Q, R = weights(at_rest(NAME))
    steps = zip(along(), trajectory_gains(along(), Q, R, Q_end=Q, period=PERIOD), strict=False)
    gains = np.array([gain_in_full_coordinates(one, K) for one, K in steps])
    assert gains.shape == (TICKS, 1, 8)
    assert np.ptp(gains, axis=0).max() > 0.05 * np.abs(gains).max()


def test_a_deviation_dies_out_along_the_motion_and_grows_where_the_motion_is_only_replayed():
    path, u = motion()
    linear = at_rest(NAME)
    aside = path.q[0] + np.array([0.0, 0.0, DEVIATION, 0.0])
    replay = SampledLaw(lambda t, *_: u[min(round(t / PERIOD), TICKS)], PERIOD)
    fallen = mb.simulate(linear.system, aside, np.zeros(4), TICKS * PERIOD, controller=replay)
    assert np.abs(fallen.q[-1] - path.q[-1]).max() > FALLEN
    after = 1.0  # s, at rest
    report = validate(
        law_along(),
        models.path(NAME),
        TICKS * PERIOD + after,
        q0=aside,
        perturb={"mass": 0.1},
        scenario=ScenarioOptions(timestep=1e-3),
    )
    q = report.runs[0].recording.q
    away = np.abs(q[:TICKS] - path.q[:TICKS]).max(axis=1)
    assert away[0] == pytest.approx(DEVIATION, rel=1e-3)
    assert away[-TICKS // 8 :].max() < DEVIATION / 2
    assert np.abs(q[-1] - linear.q).max() < DEVIATION / 2


@pytest.mark.parametrize("name", [NAME, "planar_biped"])
def test_a_table_gives_each_tick_its_gain_and_its_last_row_stays_in_force(name):
    linear = at_rest(name)
    Q, R = weights(linear)
    law = finite_horizon_lqr(
        linear, Q, R, 10 * PERIOD, Q_end=0.1 * Q, options=LawOptions(period=PERIOD)
    )
    gains = finite_horizon_gains(linear, Q, R, 10, Q_end=0.1 * Q, period=PERIOD)
    q, v = states_near(linear, 1, size=0.01)
    z, x0 = law.controller.z0, linear.coordinates(q[:, 0], v[:, 0])
    for k in range(14):
        u, z, status, *_ = law.function(q, v, [], z)
        expected = linear.u - gains[min(k, 9)] @ x0
        assert_allclose(np.array(u).ravel(), expected, rtol=1e-10)
        assert float(status) == 0
    assert float(z[0]) == 9


def test_the_c_of_a_table_equals_its_function_whatever_the_state_holds(tmp_path):
    law, linear = law_along(), at_rest(NAME)
    function, program = (
        f.map(STATES) for f in (law.function, export_c(law, tmp_path / "c").load())
    )
    q, v = states_near(linear, STATES, size=0.2)
    z = np.tile(law.controller.z0[:, None], (1, STATES))
    z[0] = np.random.default_rng(2).uniform(-20, TICKS + 40, STATES)
    z[0, :3], q[0, 3] = (np.nan, 1e9, np.inf), np.nan
    one = [np.array(x) for x in function(q, v, np.zeros((0, STATES)), z)]
    other = [np.array(x) for x in program(q, v, np.zeros((0, STATES)), z)]
    for a, b in zip(one, other, strict=True):
        assert_allclose(b, a, rtol=ROUNDING, atol=ROUNDING)
    u, z_next, status = one[0], one[1], one[2]
    assert np.all(np.abs(u) <= linear.system.limits.ctrl[0, 1])
    assert np.all(z_next[0, 4:] >= 1)
    assert np.all(z_next[0, 4:] <= TICKS)
    assert status[0, 1] < 2
    assert_array_equal(status[0, [0, 2, 3]], 3)


def test_the_qp_takes_a_regulator_and_refuses_a_table():
    linear = at_rest(NAME)
    limited = within_limits(lqr(linear, *weights(linear)))
    u = limited.function(linear.q, np.zeros(4), [], limited.controller.z0)[0]
    assert_allclose(np.array(u).ravel(), linear.u, rtol=1e-9)
    refused(err.ProblemError, "'trajectory_lqr' reads a table", lambda: within_limits(law_along()))


def test_errors_of_horizons_name_what_was_expected():
    linear = at_rest(NAME)
    Q, R = weights(linear)
    with pytest.raises(err.ProblemError, match="shorter than one period"):
        finite_horizon_lqr(linear, Q, R, 1e-4, options=LawOptions(period=PERIOD))
    refused(err.ProblemError, "1 samples of a motion", lambda: trajectory_lqr(along()[:1], Q, R))
    with pytest.raises(err.ProblemError, match="does not rest"):
        trajectory_lqr(linearize_along(linear.system, *moving_samples()), Q, R)
    with pytest.raises(err.ProblemError, match="is discrete"):
        finite_horizon_gains(discretize(linear, PERIOD), Q, R, 3, period=PERIOD)
    with pytest.raises(err.ShapeError, match="Q_end has shape"):
        finite_horizon_lqr(linear, Q, R, 1.0, Q_end=np.ones(3), options=LawOptions(period=PERIOD))
