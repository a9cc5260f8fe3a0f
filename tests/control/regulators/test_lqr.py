"""Regulators of mechanisms with constraints: laws, errors, and the generated C."""

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm
from support.lqr_problems import (
    MODELS,
    at_rest,
    in_another_basis,
    on_the_manifold,
    states_near,
    weights,
)
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.laws import LawOptions
from mbcasadi.control.regulators import (
    discretize,
    equilibrium,
    gain_in_full_coordinates,
    linearize,
    lqr,
    lqr_gain,
    pole_placement,
    poles_gain,
)
from mbcasadi.dynamics import Treatment, forward_dynamics

SAME = 1e-9  # relative difference of gains that should be one
PERIOD = 1e-3  # s
STATES = 1000
SECOND_POLE = """
    <body name="twin" pos="0 0 0.02">
      <joint name="twin" type="hinge" axis="0 1 0" damping="0.001"/>
      <geom type="capsule" fromto="0 0.04 0 0 0.04 0.5" size="0.006" mass="0.05"/>
      <geom type="sphere" pos="0 0.04 0.5" size="0.03" mass="{bob}"/>
    </body>
    <body name="pole\""""


def two_poles(bob):
    """Return the cart with a second pole beside the first, its bob of mass `bob`, kg."""
    text = models.path("cart_pole").read_text()
    return mb.read_mjcf(text.replace('<body name="pole"', SECOND_POLE.format(bob=bob)))


@pytest.mark.parametrize("name", MODELS)
def test_neither_basis_nor_repeated_rows_change_the_gain(name):
    linear = at_rest(name)
    (Q, R), system = weights(linear), linear.system
    gain = full_gain(linear, Q, R)
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    rows = system.constraint(q)
    twice = system.with_rows(q, v, phi=ca.vertcat(rows[0] - 2 * rows[2], 3 * rows[2]))
    for other in (linearize(twice, linear.q, None, linear.u), in_another_basis(linear)):
        assert_allclose(full_gain(other, Q, R), gain, atol=SAME * np.abs(gain).max())


@pytest.mark.parametrize("name", MODELS)
def test_the_law_is_the_gain_on_deviations_and_desires_the_motion_that_it_causes(name):
    linear = at_rest(name)
    Q, R = weights(linear)
    law, system = lqr(linear, Q, R, options=LawOptions(period=PERIOD)), linear.system
    K = lqr_gain(linear, Q, R, period=PERIOD).K
    fd = forward_dynamics(system, "lagrange", derivatives=False, treatment=Treatment(rank_tol=1e-6))
    for measured in zip(*(x.T for x in states_near(linear, 5, size=0.01)), strict=True):
        u = np.array(law.function(*measured, [], [])[0]).ravel()
        assert_allclose(u, linear.u - K @ linear.coordinates(*measured))
        state = on_the_manifold(system, *measured)
        u = np.array(law.function(*state, [], [])[0]).ravel()
        a = np.array(law.desired(*state, [], [])[0]).ravel()
        expected = np.array(fd(*state, system.actuator_force(*state, u))[0]).ravel()
        assert_allclose(a, expected, rtol=1e-6, atol=1e-6)


def test_a_setpoint_from_the_reference_is_held_like_the_point_of_linearisation(tmp_path):
    linear = at_rest("pendulum_on_four_bar")
    system = linear.system
    law = lqr(linear, *weights(linear), track_reference=True)
    other = equilibrium(system, linear.q + np.array([0.1, 0, 0, 0]), held=["crank"])
    ref = law.reference(setpoint_q=other.q, setpoint_v=np.zeros(4), setpoint_u=other.u)
    u, _, status, *_ = law.function(other.q, np.zeros(4), ref, [])
    assert_allclose(np.array(u).ravel(), other.u, rtol=1e-12)
    assert float(status) == 0
    assert np.abs(other.u - linear.u).max() > 1e-3
    fixed = lqr(linear, *weights(linear))
    setpoint = law.reference(setpoint_q=linear.q, setpoint_v=np.zeros(4), setpoint_u=linear.u)
    q, v = states_near(linear, 1)
    assert_allclose(
        np.array(law.function(q, v, setpoint, [])[0]), np.array(fixed.function(q, v, [], [])[0])
    )


def test_poles_are_placed_where_they_are_required():
    linear = at_rest("planar_biped")
    desired = np.array([-5, -6, -7, -8 + 2j, -8 - 2j, -9])
    K = poles_gain(linear, desired)
    actual = np.linalg.eigvals(linear.dfdx - linear.dfdu @ K)
    assert_allclose(np.sort_complex(actual), np.sort_complex(desired), atol=1e-6)
    K = poles_gain(linear, desired, period=PERIOD)
    nx, nu = linear.dfdu.shape
    F = np.zeros((nx + nu, nx + nu))
    F[:nx] = np.hstack([linear.dfdx, linear.dfdu])
    step = expm(F * PERIOD)[:nx]
    dead = np.linalg.svd(linear.dfdu)[2][3]
    assert_allclose(dead @ K, 0, atol=1e-9 * np.abs(K).max())
    rates = np.log(np.linalg.eigvals(step[:, :nx] - step[:, nx:] @ K)) / PERIOD
    assert_allclose(np.sort_complex(rates), np.sort_complex(desired), atol=1e-6)


def test_two_equal_poles_on_a_cart_are_refused_by_the_mode_that_they_share():
    linear = linearize(two_poles(0.15), np.zeros(6))
    with pytest.raises(err.ProblemError, match=r"not stabilisable.*grows.*twin, pole move"):
        lqr(linear, np.ones(12), 1.0)
    with pytest.raises(err.ProblemError, match=r"uncontrollable.*twin, pole.*controllable systems"):
        pole_placement(linear, [-1, -2, -3, -4, -5, -6])
    unequal = linearize(two_poles(0.05), np.zeros(6))
    assert np.all(lqr_gain(unequal, np.ones(12), 1.0).poles.real < 0)


def test_a_mode_that_drifts_and_costs_nothing_is_refused_by_name():
    linear = at_rest("cart_pole")
    only_the_pole = np.r_[np.zeros(4), 1.0, np.zeros(4), 0.1]
    with pytest.raises(err.ProblemError, match=r"Q does not see a mode that drifts.*carriage"):
        lqr(linear, only_the_pole, 1.0)
    with_cart = only_the_pole + np.r_[1e-3, np.zeros(9)]
    assert np.all(np.abs(lqr_gain(linear, with_cart, 1.0, period=PERIOD).poles) < 1)


def test_errors_name_what_was_expected():
    linear = at_rest("pendulum_on_four_bar")
    Q, R = weights(linear)
    with pytest.raises(err.ShapeError, match=r"Q has shape \(4,\), expected \(8, 8\)"):
        lqr(linear, np.ones(4), R)
    with pytest.raises(err.ShapeError, match=r"N has shape \(8,\), expected \(8, 1\)"):
        lqr(linear, Q, R, N=np.ones(8))
    with pytest.raises(err.ProblemError, match="expected none negative"):
        lqr(linear, Q, R, N=np.full((8, 1), 100.0))
    refused(
        err.ProblemError, r"period = 0", lambda: lqr(linear, Q, R, options=LawOptions(period=0.0))
    )
    refused(err.ShapeError, "poles has shape", lambda: poles_gain(linear, [-1, -2]))
    with pytest.raises(err.ProblemError, match="expected negative real parts"):
        poles_gain(linear, [-1, -2, -3, 4])
    refused(err.ProblemError, "poles", lambda: poles_gain(linear, [-1, -1, -1, -1]))
    with pytest.raises(err.ProblemError, match="does not rest where it was linearised"):
        lqr(linearize(linear.system, linear.q), Q, R)
    refused(err.ProblemError, "is discrete", lambda: lqr(discretize(linear, PERIOD), Q, R))


def full_gain(linear, Q, R):
    return gain_in_full_coordinates(linear, lqr_gain(linear, Q, R, period=PERIOD).K)
