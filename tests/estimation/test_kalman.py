"""The Kalman filter on the constraint manifold, on sensors of the model, and LQG."""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.loops_in_mujoco import ticks
from support.lqr_problems import at_rest, states_near, weights
from support.refusals import refused
from support.sensor_models import LOOP

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control.regulators import (
    discretize,
    encoders,
    linearize,
    lqr_gain,
    observability,
    sensor_output,
)
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.estimation import kalman, lqg
from mbcasadi.plant import Plant

ROUNDING = 1e-12
PERIOD = 2e-3  # s
STATES = 1000
NAME = "pendulum_on_four_bar"
NOISE = 1e-3  # rad, of an encoder
FORCES = 4.0  # rad/s² √s, what disturbs the rates
FALLEN = 0.5  # rad


@cache
def the_filter():
    """Two encoders of four joints; what disturbs the mechanism acts on its rates."""
    linear = at_rest(NAME)
    W = np.r_[np.zeros(4), np.full(4, FORCES**2)]
    measured = encoders(linear.system, ["crank", "pendulum"])
    return kalman(linear, measured, W, NOISE**2, period=PERIOD)


@cache
def gain():
    linear = at_rest(NAME)
    return lqr_gain(linear, *weights(linear), period=PERIOD).K


def without_correction(estimator):
    """Return the same filter without its correction, and without a gate that would say so."""
    gains = replace(estimator.gains, L=0 * estimator.gains.L)
    return replace(estimator, gains=gains, gate=None)


def test_the_estimate_of_all_joints_comes_from_two_and_converges():
    estimator, linear = the_filter(), at_rest(NAME)
    step = discretize(linear, PERIOD)
    tick = estimator.function
    x, guess = np.array([0.01, -0.02, 0.05, 0.1]), np.zeros(4)
    rng = np.random.default_rng(0)
    start = np.linalg.norm(x - guess)
    errors, gate = [], estimator.gate0
    for _ in range(60):
        u = linear.u + 0.1 * rng.standard_normal(1)
        y = estimator.y_0 + estimator.C @ x
        out = tick(guess, y, u, gate)
        gate = out[3]
        guess, now = np.array(out[0]).ravel(), x
        x = step.dfdx @ x + step.dfdu @ (u - linear.u)
        errors.append(np.linalg.norm(x - guess))
    assert errors[3] > 0.1 * start
    assert errors[-1] < 1e-6 * start
    q, v = linear.state(now)
    assert_allclose(np.array(out[1]).ravel(), q, atol=1e-6 * start)
    assert_allclose(np.array(out[2]).ravel(), v, atol=1e-5 * start)


def test_readings_count_from_their_values_at_the_operating_point():
    rng = np.random.default_rng(1)
    x, y_0, change = rng.standard_normal(4), rng.standard_normal(2), rng.standard_normal(2)
    estimator = replace(the_filter(), y_0=y_0, gate=None)
    for used, expected in ((1, change), (0, estimator.C @ x)):
        deviation = ca.evalf(estimator.deviation(ca.SX(x), ca.SX(y_0 + change), ca.SX(used)))
        assert_allclose(deviation.full().ravel(), expected, atol=ROUNDING)
    same = estimator.correct(ca.SX(x), ca.SX(y_0 + estimator.C @ x), ca.SX(0, 1))
    assert_allclose(ca.evalf(same.x).full().ravel(), x, atol=ROUNDING)


def test_the_error_of_the_filter_is_as_large_as_it_reports():
    """A noisy linear mechanism, 400 runs at once; the standard error of a variance is 7 %."""
    estimator = the_filter()
    A, C, L = estimator.linear.dfdx, estimator.C, estimator.gains.L
    rng, runs = np.random.default_rng(1), 400
    before = estimator.gains.before
    W = before - A @ estimator.gains.after @ A.T  # what a tick adds
    root = np.linalg.cholesky(W + 1e-18 * np.eye(4))
    error = np.linalg.cholesky(before) @ rng.standard_normal((4, runs))
    for _ in range(100):
        after = error - L @ (C @ error + NOISE * rng.standard_normal((2, runs)))
        error = A @ after + root @ rng.standard_normal((4, runs))
    actual = np.var(after, axis=1) / np.diag(estimator.gains.after)
    assert_allclose(actual, 1.0, atol=0.25)
    assert estimator.gains.after[0, 0] < before[0, 0]


def test_regulator_and_filter_keep_their_own_poles_in_one_loop():
    estimator, linear = the_filter(), at_rest(NAME)
    law, step = lqg(estimator, gain()), discretize(linear, PERIOD)
    q, v, z = ca.SX.sym("q", 4), ca.SX.sym("v", 4), ca.SX.sym("z", 4)
    calm = np.zeros(law.controller.z0.size - 4)
    u, z_next, *_ = law.function(q, v, ca.SX(0, 1), ca.vertcat(z, calm))
    z_next = z_next[:4]
    slopes = ca.Function("s", [q, v, z], [ca.jacobian(e, ca.vertcat(q, v, z)) for e in (u, z_next)])
    du, dz = (np.array(e) for e in slopes(linear.q, linear.v, np.zeros(4)))
    T = np.vstack([linear.to_dq, linear.to_dv])
    loop = np.block(
        [[step.dfdx + step.dfdu @ du[:, :8] @ T, step.dfdu @ du[:, 8:]], [dz[:, :8] @ T, dz[:, 8:]]]
    )
    regulator = np.linalg.eigvals(step.dfdx - step.dfdu @ gain())
    both = np.concatenate([regulator, estimator.gains.poles])
    actual = np.linalg.eigvals(loop)
    for pole in both:
        assert np.abs(actual - pole).min() < 1e-6


def test_the_prediction_uses_the_clipped_control():
    estimator, linear = the_filter(), at_rest(NAME)
    law = lqg(estimator, gain())
    q = linear.q + np.array([0.3, -0.2, -0.1, 0.1])
    u, z, status, *_ = law.function(q, np.zeros(4), [], law.controller.z0)
    assert float(status) == 1
    assert abs(float(u)) == linear.system.limits.ctrl[0, 1]
    y = estimator.output(q, np.zeros(4))
    expected = estimator.function(np.zeros(4), y, u, estimator.gate0)[0]
    assert_allclose(np.array(z)[:4], np.array(expected), rtol=1e-12)


def swing(estimator, folder, seconds=3.0):
    """Return the largest deviation of a pendulum under LQG from noisy encoders alone.

    The plant is MuJoCo, 10 % heavier and pushed; the law is C. It gets no velocity, and neither
    coupler nor rocker.
    """
    linear, law, rng = at_rest(NAME), lqg(estimator, gain()), np.random.default_rng(4)
    plant, away = Plant(models.path(NAME), perturb={"mass": 0.1}), []
    plant.reset(linear.q)

    def measured(q, _):
        plant.apply_force(0.1 * (0.5 <= plant.time < 0.6) * np.eye(4)[2])
        noisy = q + NOISE * rng.standard_normal(4)
        return np.where([True, False, True, False], noisy, 0.0), np.zeros(4)

    given = {"steps": round(PERIOD / plant.timestep), "measured": measured}
    given["function"] = export_c(law, folder).load()
    for out in ticks(law, plant, round(seconds / PERIOD), [], **given):
        assert out["status"] < 2
        away.append(np.abs(plant.q - linear.q).max())
        if away[-1] > 2 * FALLEN:
            break
    return np.array(away)


def test_the_pendulum_stays_up_on_noisy_encoders_and_falls_with_the_filter_switched_off(tmp_path):
    away = swing(the_filter(), tmp_path / "on")
    assert 0.01 < away.max() < FALLEN
    assert away[-100:].max() < 0.1
    assert swing(without_correction(the_filter()), tmp_path / "off").max() > FALLEN


def test_speeds_are_known_better_than_from_differences_of_the_measurement():
    to_dv = at_rest(NAME).to_dv
    spread = np.sqrt(np.diag(to_dv @ the_filter().gains.after @ to_dv.T))
    assert spread.max() < np.sqrt(2) * NOISE / PERIOD / 2


def test_the_c_of_the_filter_alone_equals_its_function(tmp_path):
    tick = the_filter().function
    program = export_c(tick, tmp_path / "c").load()
    rng = np.random.default_rng(9)
    values = [rng.standard_normal((n, STATES)) for n in (4, 2, 1, 4)]
    for a, b in zip(tick.map(STATES)(*values), program.map(STATES)(*values), strict=True):
        assert_allclose(np.array(b), np.array(a), rtol=ROUNDING, atol=ROUNDING)


def test_what_is_not_seen_is_named():
    linear = at_rest("cart_pole")
    pole_only = encoders(linear.system, ["pole"])
    report = observability(linear, linear.output_matrix(pole_only))
    assert not report.observable
    assert not report.detectable
    with pytest.raises(err.ProblemError, match=r"not detectable.*drifts.*carriage.*Measure one"):
        kalman(linear, pole_only, np.ones(10), 1e-6)
    pole, carriage = (
        linear.output_matrix(encoders(linear.system, [name])) for name in ("pole", "carriage")
    )
    for share, seen in ((1e-5, True), (1e-9, False)):  # above rounding, and below
        assert observability(linear, pole + share * carriage).observable == seen
    deck = encoders(linear.system, ["deck_x"], ["pole"])  # held by bolts: as good as the carriage
    assert observability(linear, linear.output_matrix(deck)).observable
    assert "observable: all 4 states" in observability(linear, linear.output_matrix(deck)).in_words
    swinging = linearize(linear.system, linear.q + np.r_[0, 0, 0, 0, np.pi], None, linear.u)
    speeds = encoders(linear.system, [], ["carriage"])
    unseen = observability(swinging, swinging.output_matrix(speeds)).unseen
    assert len(unseen) == 1
    assert {"carriage", "deck_x"} <= set(unseen[0].joints)


def test_a_drifting_mode_without_noise_has_no_stationary_filter():
    linear = at_rest("cart_pole")
    measured = encoders(linear.system, ["carriage", "pole"])
    with pytest.raises(err.ProblemError, match=r"no stationary filter; expected noise W"):
        kalman(linear, measured, np.zeros(10), 1e-6)


def test_errors_of_the_filter_name_what_was_expected():
    linear = at_rest(NAME)
    system = linear.system
    measured = encoders(system, ["crank", "pendulum"])
    refused(err.UnknownNameError, r"'tip'.*'crank'", lambda: encoders(system, ["tip"]))
    refused(err.ProblemError, "nothing is measured", lambda: encoders(system, []))
    with pytest.raises(err.ShapeError, match=r"V has shape \(3,\), expected \(2, 2\)"):
        kalman(linear, measured, np.ones(8), np.ones(3))
    with pytest.raises(err.ProblemError, match="V has the eigenvalue 0"):
        kalman(linear, measured, np.ones(8), 0.0)
    with pytest.raises(err.ShapeError, match=r"W has shape \(4,\), expected \(8, 8\)"):
        kalman(linear, measured, np.ones(4), 1.0)
    with pytest.raises(err.ProblemError, match="is discrete"):
        kalman(discretize(linear, PERIOD), measured, np.ones(8), 1.0)
    with pytest.raises(err.ShapeError, match=r"K has shape \(4,\), expected \(1, 4\)"):
        lqg(the_filter(), np.ones(4))


system = pytest.fixture(scope="module")(lambda: mb.read_mjcf(LOOP))


def test_a_gyro_and_an_encoder_make_the_state_known(system):
    linear = mb.linearize(system, mb.equilibrium(system))
    gyro = sensor_output(system, ["turning"])
    C = linear.output_matrix(gyro)
    assert np.abs(C[1]).max() > 0.1  # the rate of the plane's normal
    assert np.abs(C[[0, 2]]).max() < 1e-12
    noise = np.repeat([0.0, 1.0], system.nv)
    angle = encoders(system, ["crank"])
    both = kalman(linear, _stack(system, angle, gyro), noise, 1e-4, period=1e-3)
    alone = kalman(linear, angle, noise, 1e-4, period=1e-3)
    assert np.trace(both.gains.after) < 0.5 * np.trace(alone.gains.after)


def _stack(system, first, second):
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    y = ca.vertcat(first(q, v), second(q, v)[1])
    return ca.Function("y", [q, v], [y], ["q", "v"], ["y"])


@pytest.mark.parametrize("name", ["felt", "force", "drive"])
def test_what_reads_more_than_the_state_is_no_output(system, name):
    with pytest.raises(ProblemError, match=f"sensor '{name}'.*more than q and v"):
        sensor_output(system, [name])


def test_outputs_need_a_known_sensor(system):
    refused(UnknownNameError, "unknown sensor", lambda: sensor_output(system, ["nose"]))
    refused(ProblemError, "nothing is measured", lambda: sensor_output(system, []))


def test_lqg_is_bounded_flags_what_is_bad_and_starts_anew():
    linear, law = at_rest(NAME), lqg(the_filter(), gain())
    q, v = states_near(linear, STATES, size=0.3)
    z = 0.3 * np.random.default_rng(8).standard_normal((law.z0.size, STATES))
    z[4:6] *= 10  # the gate's counters
    q[0, 0], z[1, 1], z[2, 2] = np.nan, np.inf, 1e300
    u, z_next, status, *_ = (
        np.array(x) for x in law.function.map(STATES)(q, v, np.zeros((0, STATES)), z)
    )
    own = slice(0, law.core.nz)
    assert_array_equal(status[0, :3], 3)
    assert_array_equal(z_next[own, 1], law.z0[own])
    assert {0.0, 1.0, 2.0, 3.0} <= set(status.ravel())
    assert np.all(np.abs(u) <= linear.system.limits.ctrl[0, 1])
