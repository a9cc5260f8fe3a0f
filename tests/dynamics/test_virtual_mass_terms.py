"""The virtual-mass model of whole mechanisms: its motion, its skew law, its condition."""

import functools

import numpy as np
import pytest
from support.admissible_states import (
    admissible_states,
    assert_close,
    call,
    column,
    drifted_states,
    times,
)
from support.constrained_mechanisms import mechanism

from mbcasadi.dynamics import forward_dynamics
from mbcasadi.dynamics.terms import terms_fun
from mbcasadi.dynamics.virtual_mass_functions import actuation_map, virtual_mass_terms
from mbcasadi.errors import ProblemError, UnsupportedFeatureError

STATES = 20
STILL = ("four_bar", "ball_loop", "rolling_disc", "switched_particles", "euler_parameters")
DRIVEN = ("moving_pendulum", "driven_truss")  # rows that depend on time


@functools.cache
def the_terms(name, virtual_mass=None):
    return virtual_mass_terms(mechanism(name).system, virtual_mass=virtual_mass)


@functools.cache
def at_states(name, virtual_mass=None, drifted=False):
    """Return terms, motion and the matrices of [A16] of a mechanism at its states."""
    case = mechanism(name)
    states = (drifted_states if drifted else admissible_states)(case, STATES)
    motion = call(forward_dynamics(case.system, "lagrange"), states)
    matrices = call(the_terms(name, virtual_mass), states)
    return call(terms_fun(case.system), states) | motion | matrices


@pytest.mark.parametrize("mass", [None, 3.0])
@pytest.mark.parametrize("name", STILL)
def test_the_model_has_the_motion_of_the_mechanism(name, mass):
    """`M_bar a + C_bar v = P (f + f_passive - g)`  [A16, eq. 8a]."""
    system = mechanism(name).system
    states = admissible_states(mechanism(name), STATES)
    values = at_states(name, mass)
    at = {key: states[key] for key in ("q", "v")}
    passive = column(call(system.passive_force, at), "f_passive")
    gravity = column(call(system.gravity_force, {"q": states["q"]}), "g")
    acting = times(values["P"], states["f"].T + passive - gravity)
    moving = times(values["C_bar"], states["v"].T)
    assert np.abs(moving).max() > 1e-3
    assert_close(times(values["M_bar"], column(values, "a")) + moving, acting)


@pytest.mark.parametrize("mass", [None, 3.0])
@pytest.mark.parametrize("name", [*STILL, "moving_pendulum"])
def test_rate_of_the_inertia_less_twice_the_coriolis_matrix_is_skew(name, mass):
    """[A16, Theorem 1], the rate by differences, at velocities that are not admissible too."""
    case = mechanism(name)
    states = admissible_states(case, STATES)
    rng = np.random.default_rng(5)
    states = states | {"v": rng.standard_normal(states["v"].shape)}
    step, nearby = 1e-6, []
    for s in (step, -step):
        q = column(call(case.system.integrate, {"q": states["q"], "dv": s * states["v"]}), "q_next")
        moved = states | {"q": q.T} | ({"t": states["t"] + s} if "t" in states else {})
        nearby.append(call(the_terms(name, mass), moved)["M_bar"])
    rate = (nearby[0] - nearby[1]) / (2 * step)
    assert np.abs(rate).max() > 1e-3
    twice = 2 * call(the_terms(name, mass), states)["C_bar"]
    gap = rate - twice
    # the quotient carries errors of step² and 1e-16 / step
    assert_close(gap + np.swapaxes(gap, 1, 2), 0 * gap, 1e-7 * np.abs(twice).max())


@pytest.mark.parametrize("name", STILL + DRIVEN)
def test_the_default_mass_gives_the_least_condition(name):
    """[A16, eq. 12-14]."""
    values, other = at_states(name), at_states(name, 3.0)
    low, high, mean, cond = (values[key].ravel() for key in ("low", "high", "virtual_mass", "cond"))
    assert np.all(low <= mean * (1 + 1e-12))
    assert np.all(mean <= high * (1 + 1e-12))
    np.testing.assert_allclose(cond, high / low, rtol=1e-8)
    np.testing.assert_allclose(cond, np.linalg.cond(values["M_bar"]), rtol=1e-8)
    np.testing.assert_allclose(other["cond"].ravel(), np.linalg.cond(other["M_bar"]), rtol=1e-8)
    assert np.all(other["cond"].ravel() >= cond * (1 - 1e-9))


@pytest.mark.parametrize("drifted", [False, True])
@pytest.mark.parametrize("name", STILL + DRIVEN)
def test_oblique_projection_gives_the_constraint_force(name, drifted):
    """`f_c = -S_ob (f - h + M A⁺ c)`  [A16, eq. 29], on driven and on drifted states."""
    case = mechanism(name)
    states = (drifted_states if drifted else admissible_states)(case, STATES)
    values = at_states(name, None, drifted)
    a, h = column(values, "a"), column(values, "h")
    normal = a - times(values["P"], a)
    found = -times(values["S_ob"], states["f"].T - h - times(values["M"], normal))
    assert_close(found, column(values, "f_c"), 1e-8)


def test_turning_of_the_null_space_carries_the_normal_acceleration():
    """`Ω v = Λ v = -A⁺ Ȧ v` for admissible v, `P Λ = 0`  [A16, eq. 5, section 4.1]."""
    for name in STILL:
        values = at_states(name)
        a, v = column(values, "a"), admissible_states(mechanism(name), STATES)["v"].T
        normal = a - times(values["P"], a)
        assert_close(times(values["Omega"], v), normal)
        assert_close(times(values["Lambda"], v), normal)
        assert_close(values["P"] @ values["Lambda"], 0 * values["P"])


def test_a_drive_that_reaches_every_motion_has_an_oblique_force_map():
    """One motor on a four-bar of three joints  [A16, eq. 17 corrected, 20]; none on its rocker."""
    case = mechanism("four_bar")
    states = admissible_states(case, STATES)
    found = call(actuation_map(case.system), states)
    P, R, Gamma_u = at_states("four_bar")["P"], found["R_ob"], found["Gamma_u"]
    B = case.system.actuation(states["q"][:, 0]).full()
    assert found["complete"].all()
    assert np.abs(B).max() > 0.1
    np.testing.assert_allclose(P @ R, P, atol=1e-10)
    np.testing.assert_allclose(R @ P, R, atol=1e-10)
    np.testing.assert_allclose(Gamma_u, np.linalg.pinv(P @ B), atol=1e-10)
    free = call(
        actuation_map(mechanism("ball_loop").system), admissible_states(mechanism("ball_loop"), 3)
    )
    assert not free["complete"].any()  # nothing drives it


def test_wrong_requests_are_refused_by_name():
    with pytest.raises(ProblemError, match=r"virtual_mass is -1, expected a positive number"):
        virtual_mass_terms(mechanism("four_bar").system, virtual_mass=-1)
    with pytest.raises(UnsupportedFeatureError, match=r"nonlinear in v.*use forward_dynamics"):
        virtual_mass_terms(mechanism("climbing_particle").system)
