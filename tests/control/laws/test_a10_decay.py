"""A10's laws in motion: the error decays at the rate of its gain, and below its bounds."""

import functools

import casadi as ca
import numpy as np
from a10_motions import (
    K_D,
    K_P,
    STRONG,
    coordinates_of,
    flat,
    length_of_error,
    papers_reference,
    run_of,
    states,
    swing_of,
    swinging_reference,
    system_of,
)

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import (
    LawOptions,
    function_coordinates,
    gain_condition,
    quasi_velocity_tracking,
)
from mbcasadi.validation import Criteria, validate

INTEGRATION = 1e-6  # √kg m/s, of a motion at rtol 1e-8


def test_the_composite_error_of_the_papers_arm_decays_at_exactly_the_gain():
    """(41) corrected: equality for a number K_d. The arm starts at rest beside its path."""
    system, theta = system_of("twin"), coordinates_of("twin")
    strong = np.tile([-STRONG, STRONG], (3, 1))
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=K_D, options=LawOptions(ctrl_limits=strong)
    )
    place, lean = 0.4, np.pi / 12 + 0.2
    q2 = -np.arccos(place - np.sin(lean))
    q0 = np.array([np.cos(lean) - np.sin(q2), q2, lean + 1.5 * np.pi - q2])
    run = run_of(system, law, q0, np.zeros(3), 2.0, functools.partial(papers_reference, law))
    errors = length_of_error(system, theta, run)
    assert errors[0] > 1.0
    np.testing.assert_allclose(errors, errors[0] * np.exp(-K_D * run[0]), atol=INTEGRATION)


def test_so_does_that_of_a_loop_with_passive_joints():
    system, theta = system_of("five_bar"), coordinates_of("five_bar")
    strong = np.tile([-STRONG, STRONG], (2, 1))
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=K_D, options=LawOptions(ctrl_limits=strong)
    )
    q, v = (each[0] for each in states(system, 1, seed=4))
    run = run_of(system, law, q, v, 1.5, swing_of(law, flat(theta.theta(q))[0] + [0.1, -0.1]))
    errors = length_of_error(system, theta, run)
    assert errors[0] > 0.1
    np.testing.assert_allclose(errors, errors[0] * np.exp(-K_D * run[0]), atol=INTEGRATION)


def test_with_unequal_gains_the_error_stays_below_the_bound_of_the_least():
    system, theta = system_of("planar_3rrr"), coordinates_of("planar_3rrr open")
    kd = np.linspace(4.0, 12.0, system.nv)
    strong = np.tile([-STRONG, STRONG], (system.nu, 1))
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=kd, allow_free=True, options=LawOptions(ctrl_limits=strong)
    )
    q, v = (each[0] for each in states(system, 1, seed=5))
    run = run_of(system, law, q, v, 0.6, swing_of(law, flat(theta.theta(q))[0]))
    errors, bound = length_of_error(system, theta, run), np.exp(-4.0 * run[0])
    assert np.all(errors <= errors[0] * bound + 1e-7)
    assert errors[-1] < 0.7 * errors[0] * bound[-1]


def test_the_coordinates_stay_below_their_bound_and_the_condition_is_explained():
    """(45) corrected, with c_b of the motion itself."""
    system, theta = system_of("five_bar"), coordinates_of("five_bar")
    strong = np.tile([-STRONG, STRONG], (system.nu, 1))
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=K_D, options=LawOptions(ctrl_limits=strong)
    )
    q, v = (each[0] for each in states(system, 1, seed=6))
    run = run_of(system, law, q, v, 1.5, swing_of(law, flat(theta.theta(q))[0] + [0.2, 0.1]))
    epsilon = length_of_error(system, theta, run)
    now = theta.theta.map(len(run[0]))(run[1].T).full()
    error = np.linalg.norm(now - run[3][:, :2].T, axis=0)
    condition = gain_condition(system, theta, run[1], run[2], kp=K_P, kd=K_D)
    bound = condition.bound(run[0], error[0], epsilon[0])
    assert error[0] > 0.1
    assert np.all(error <= bound * (1 + 1e-6))
    assert bound[-1] < 0.2 * bound.max()
    assert condition.holds == (condition.c_l * condition.c_v < K_P)
    assert f"{condition.required:.3g} 1/s" in condition.in_words
    weak = gain_condition(system, theta, run[1], 100 * run[2], kp=K_P, kd=K_D)
    assert not weak.holds
    assert "does not hold" in weak.in_words


def test_the_constants_of_the_gain_condition_are_those_of_a_particle():
    """A mass m in the plane with θ = (x²/2, y): B = diag(x, 1)/√m, dB/dθ1 = 1/(x √m)."""
    mass, x, y = 4.0, 0.5, 2.0
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = mb.from_lagrangian(q, v, kinetic=mass / 2 * ca.sumsqr(v), B=ca.DM.eye(2))
    theta = ca.Function("theta", [q], [ca.vertcat(q[0] ** 2 / 2, q[1])])
    condition = gain_condition(system, function_coordinates(system, theta), [[x, y]], [[3.0, 4.0]])
    constants = (condition.c_b, condition.c_l, condition.c_v)
    expected = (np.hypot(x, 1) / np.sqrt(mass), 1 / (x * np.sqrt(mass)), 5 * np.sqrt(mass))
    np.testing.assert_allclose(constants, expected, rtol=1e-12)
    equal = gain_condition(
        system, function_coordinates(system, theta), [[x, y]], [[0.0, 0.0]], kp=2.0, kd=2.0
    )
    near = gain_condition(
        system, function_coordinates(system, theta), [[x, y]], [[0.0, 0.0]], kp=2.0, kd=2.0001
    )
    np.testing.assert_allclose(equal.bound(0.7, 1, 2), near.bound(0.7, 1, 2), rtol=1e-4)


def test_a_five_bar_follows_in_mujoco_as_c_with_a_wrong_mass_a_push_and_a_late_control():
    system, theta = system_of("five_bar"), coordinates_of("five_bar")
    law = quasi_velocity_tracking(system, theta, kp=15.0, kd=40.0)
    start = flat(theta.theta(system.tree.q0))[0]
    push = np.array([0.3, 0.0, 0.0, -0.3])  # N m
    report = validate(
        law,
        models.path("five_bar"),
        2.0,
        reference=lambda t: swinging_reference(law, t, 0.3, start),
        perturb={"mass": 0.1},
        delay=1,
        disturbance=push,
        criteria=Criteria(settle=0.5),
    )
    run = report.runs[0]
    assert run.metric("tracking.rms_share") < 0.08
    assert run.metric("status.solved") == 1.0
    assert run.metric("torque.excess") == 0.0
