"""Mechanisms in their independent directions: motion, inverse dynamics."""

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

from mbcasadi.dynamics import constrained_inverse_dynamics, forward_dynamics
from mbcasadi.dynamics.null_space_functions import null_space_inverse_dynamics, null_space_terms
from mbcasadi.dynamics.terms import terms_fun

STATES = 20
ALL_KINDS = ("four_bar", "ball_loop", "moving_pendulum", "climbing_particle", "euler_parameters")
ACTUATED = ("four_bar", "five_bar", "cooperating_arms")


@functools.cache
def at_states(name, drifted):
    """Return the reduced equations, the matrices and the reference motion of a mechanism."""
    case = mechanism(name)
    states = (drifted_states if drifted else admissible_states)(case, STATES)
    found = call(null_space_terms(case.system), states) | call(terms_fun(case.system), states)
    return found | call(forward_dynamics(case.system, "lagrange"), states) | {"f_in": states["f"]}


@pytest.mark.parametrize("drifted", [False, True])
@pytest.mark.parametrize("name", [*ALL_KINDS, "switched_particles"])
def test_reduced_equations_give_the_motion_on_the_manifold_and_off_it(name, drifted):
    """`M_r y + h_r = Zᵀ f`, `a = a_across + Z y`  [S20, eq. 19]."""
    values = at_states(name, drifted)
    Z, a = values["Z"], column(values, "a")
    turned = np.swapaxes(Z, 1, 2)
    y = times(turned, a - column(values, "a_across"))
    assert_close(column(values, "a_across") + times(Z, y), a)
    acting = times(turned, values["f_in"].T)
    assert np.abs(acting).max() > 0.1
    assert_close(times(values["M_r"], y) + column(values, "h_r"), acting)


@pytest.mark.parametrize("name", ALL_KINDS)
def test_as_many_columns_of_the_basis_are_zero_as_there_are_independent_rows(name):
    values = at_states(name, False)
    Z = values["Z"]
    used = np.abs(Z).max(axis=1) > 0
    np.testing.assert_array_equal(used.sum(axis=1), Z.shape[1] - mechanism(name).rank)
    assert_close(values["A"] @ Z, np.zeros_like(values["A"]), 1e-12)
    np.testing.assert_allclose(
        np.swapaxes(Z, 1, 2) @ Z, used[:, None] * np.eye(Z.shape[1]), atol=1e-13
    )


@pytest.mark.parametrize("name", ACTUATED)
def test_controls_are_those_of_the_inverse_dynamics_by_projection(name):
    """One function divides by Z, the other by P: the same control of minimum norm."""
    case = mechanism(name)
    states = dict(admissible_states(case, STATES))
    acting = call(forward_dynamics(case.system), states)
    inputs = {key: states[key] for key in states if key != "f"} | {"a": column(acting, "a").T}
    first = call(null_space_inverse_dynamics(case.system), inputs)
    second = call(constrained_inverse_dynamics(case.system), inputs)
    for key in ("u", "lam", "residual"):
        assert_close(column(first, key), column(second, key))
    assert np.abs(column(first, "u")).max() > 0.1
