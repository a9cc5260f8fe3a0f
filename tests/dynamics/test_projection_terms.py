"""Projection matrices of whole mechanisms: against their motion, and rates against differences."""

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
from mbcasadi.dynamics.projection_functions import force_channels, projection_terms
from mbcasadi.dynamics.terms import terms_fun
from mbcasadi.errors import ProblemError, UnsupportedFeatureError

STATES = 20
TOL = 1e-9  # relative; conditions of M below 1e4
STILL = ("four_bar", "ball_loop", "rolling_disc", "switched_particles", "chained_particles")
DRIVEN = ("moving_pendulum", "driven_truss")  # rows that depend on time


@functools.cache
def at_states(name, drifted=False):
    """Return the terms, the motion and the projection matrices of a mechanism at its states."""
    case = mechanism(name)
    states = (drifted_states if drifted else admissible_states)(case, STATES)
    motion = call(forward_dynamics(case.system, "lagrange"), states)
    return call(terms_fun(case.system), states) | motion | call(the_terms(name), states)


@functools.cache
def the_terms(name):
    return projection_terms(mechanism(name).system)


def vectors(values, states, *keys):
    return [states[k].T if k in ("v", "f") else column(values, k) for k in keys]


@pytest.mark.parametrize("name", STILL)
def test_each_constraint_inertia_has_the_motion_of_the_mechanism(name):
    """`M_c a = P (f - h) + C_c v` for all three  [A05, eq. 22, 27, 29]."""
    values, states = at_states(name), admissible_states(mechanism(name), STATES)
    a, h, v, f = vectors(values, states, "a", "h", "v", "f")
    assert np.abs(values["Pdot"]).max() > 0.01
    left = times(values["P"], f - h)
    for kind in ("", "_prime", "_second"):
        found = times(values[f"M_c{kind}"], a) - times(values[f"C_c{kind}"], v)
        assert_close(found, left)


@pytest.mark.parametrize("drifted", [False, True])
@pytest.mark.parametrize("name", STILL + DRIVEN)
def test_normal_acceleration_holds_on_driven_and_on_drifted_states(name, drifted):
    """`(I - P) a = -A⁺ c`, and `M_c a = P (f - h) + M (I - P) a`."""
    case = mechanism(name)
    states = (drifted_states if drifted else admissible_states)(case, STATES)
    values = at_states(name, drifted)
    a, h, normal, f = vectors(values, states, "a", "h", "normal", "f")
    assert_close(a - times(values["P"], a), normal)
    bent = times(values["M"], normal)
    assert_close(times(values["M_c"], a), times(values["P"], f - h) + bent)
    across = times(values["P"], bent)
    assert_close(times(values["M_c_prime"], a), times(values["P"], f - h) + bent - 2 * across)
    assert_close(
        times(values["M_c_second"], a), times(values["P"], f - h) + values["gamma"][:, 0] * normal
    )


@pytest.mark.parametrize("name", STILL + DRIVEN)
def test_rate_of_the_projector_is_its_difference_along_the_motion(name):
    """Along `q ⊕ v dt` and the time, ball and free joints included; `Ṗ v` is the normal part."""
    case = mechanism(name)
    states = admissible_states(case, STATES)
    values = at_states(name)
    step, nearby = 1e-6, []
    for s in (step, -step):
        q = column(call(case.system.integrate, {"q": states["q"], "dv": s * states["v"]}), "q_next")
        moved = states | {"q": q.T} | ({"t": states["t"] + s} if "t" in states else {})
        nearby.append(call(the_terms(name), moved)["P"])
    # the quotient carries errors of step² and 1e-16 / step
    assert_close((nearby[0] - nearby[1]) / (2 * step), values["Pdot"], 1e-7)
    v, normal = vectors(values, states, "v", "normal")
    turned = times(values["Pdot"], v)
    assert name in DRIVEN or np.abs(turned - normal).max() < TOL * max(1, np.abs(normal).max())


@pytest.mark.parametrize("name", [*STILL, "moving_pendulum"])
def test_both_channels_together_give_force_and_multipliers(name):
    """[A05, eq. 32, figure 1]."""
    case = mechanism(name)
    states = admissible_states(case, STATES)
    values = at_states(name)
    channels = call(force_channels(case.system), states)
    direct, coupled, lam = (column(channels, key) for key in ("f_c_direct", "f_c_coupled", "lam"))
    f_c, lam_reference = (column(values, key) for key in ("f_c", "lam"))
    assert np.abs(coupled).max() > 0.01
    assert_close(direct + coupled, f_c)
    assert_close(lam, lam_reference, 1e-8)
    potent, impotent = (column(channels, key) for key in ("f_potent", "f_impotent"))
    assert_close(potent + impotent, states["f"].T)
    assert_close(times(values["A"], potent), 0 * lam)
    np.testing.assert_array_equal(channels["unique"], values["unique"])


def test_rank_and_uniqueness_follow_the_mask_and_the_redundancy():
    """[A05, Remark 4]: five rows of rank two; a row that is off has a free multiplier."""
    values = at_states("switched_particles")
    ranks = np.linalg.matrix_rank(values["A"], tol=1e-8)
    assert len(set(ranks)) > 1
    np.testing.assert_array_equal(values["rank"].ravel(), ranks)
    assert not values["unique"].any()
    assert at_states("rolling_disc")["unique"].all()
    free = np.trace(values["undetermined"], axis1=1, axis2=2)
    np.testing.assert_allclose(free, 5 - ranks, atol=1e-9)


def test_gamma_is_the_frobenius_norm_or_what_was_given():
    values = at_states("four_bar")
    norms = np.linalg.norm(values["M"], axis=(1, 2))
    np.testing.assert_allclose(values["gamma"].ravel(), norms, rtol=1e-12)
    given = call(
        projection_terms(mechanism("four_bar").system, gamma=0.4),
        admissible_states(mechanism("four_bar"), STATES),
    )
    P = given["P"]
    np.testing.assert_allclose(
        given["M_c_second"], P @ values["M"] + 0.4 * (np.eye(3) - P), atol=1e-12
    )
    with pytest.raises(ProblemError, match=r"gamma is 0, expected a positive number"):
        projection_terms(mechanism("four_bar").system, gamma=0)


def test_what_the_matrices_cannot_hold_is_refused_by_name():
    with pytest.raises(UnsupportedFeatureError, match=r"nonlinear in v.*use forward_dynamics"):
        projection_terms(mechanism("climbing_particle").system)
    with pytest.raises(UnsupportedFeatureError, match=r"positive definite M.*S_ob of virtual_mass"):
        force_channels(mechanism("euler_parameters").system)


def test_without_constraints_nothing_is_projected():
    values = at_states("double_pendulum")
    for key in ("M_c", "M_c_prime", "M_c_second"):
        np.testing.assert_allclose(values[key], values["M"], rtol=1e-13)
    assert not np.any(values["Pdot"])
    assert not np.any(values["rank"])
