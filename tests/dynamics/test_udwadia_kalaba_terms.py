"""Ideal and non-ideal constraint force of mechanisms: work, Gauss's principle."""

import functools

import numpy as np
import pytest
from support.admissible_states import admissible_states, assert_close, call, column, times
from support.constrained_mechanisms import mechanism

from mbcasadi.dynamics.null_space_functions import null_space_terms
from mbcasadi.dynamics.terms import terms_fun
from mbcasadi.dynamics.udwadia_kalaba_functions import udwadia_kalaba_terms
from mbcasadi.errors import UnknownNameError, UnsupportedFeatureError
from mbcasadi.formulation.root import ROOTS

STATES = 20
TOL = 1e-9  # relative; conditions of M below 1e4
NAMES = ("four_bar", "ball_loop", "moving_pendulum", "rolling_disc", "climbing_particle")


def with_friction(name):
    case = mechanism(name)
    states = dict(admissible_states(case, STATES))
    force = 3.0 * np.random.default_rng(7).standard_normal(states["f"].shape)
    return states | {"f_nonideal": force}


@functools.cache
def at_states(name, root):
    system, states = mechanism(name).system, with_friction(name)
    at = {key: value for key, value in states.items() if key not in ("f", "f_nonideal")}
    found = call(udwadia_kalaba_terms(system, root=root), states)
    return found | call(terms_fun(system), at) | {"Z": call(null_space_terms(system), at)["Z"]}


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("name", NAMES)
def test_both_parts_together_are_the_force_of_the_motion(name, root):
    values, states = at_states(name, root), with_friction(name)
    a, both = column(values, "a"), column(values, "f_ideal") + column(values, "f_n")
    assert_close(times(values["M"], a) + column(values, "h") - states["f"].T, both)
    assert_close(times(values["A"], a), -column(values, "c"))
    turned = np.swapaxes(values["A"], 1, 2)
    assert_close(times(turned, column(values, "lam")), column(values, "f_ideal"))


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_nonideal_force_does_the_prescribed_work_on_virtual_displacements(name, root):
    """`wᵀ f_n = wᵀ C`, `wᵀ f_ideal = 0` for `A w = 0`  [L15, eq. 8-10]."""
    values, states = at_states(name, root), with_friction(name)
    turned = np.swapaxes(values["Z"], 1, 2)
    prescribed = times(turned, states["f_nonideal"].T)
    assert np.abs(prescribed).max() > 0.1
    assert_close(times(turned, column(values, "f_n")), prescribed)
    assert_close(times(turned, column(values, "f_ideal")), 0 * prescribed)


@pytest.mark.parametrize("name", NAMES)
def test_the_motion_deviates_least_from_the_free_one(name):
    values = at_states(name, "cholesky")
    steps = np.random.default_rng(8).standard_normal((STATES, values["Z"].shape[1]))
    moved = column(values, "a") + times(values["Z"], steps) - column(values, "a_free")
    deviation = np.einsum("ki,kij,kj->k", moved, values["M"], moved)
    least = column(values, "deviation")[:, 0]
    assert least.max() > 0.1
    assert np.all(deviation >= least * (1 - TOL))


def test_wrong_roots_and_singular_inertias_are_refused():
    with pytest.raises(UnknownNameError, match="unknown root 'lu'; valid"):
        udwadia_kalaba_terms(mechanism("four_bar").system, root="lu")
    with pytest.raises(UnsupportedFeatureError, match="needs a positive definite M"):
        udwadia_kalaba_terms(mechanism("euler_parameters").system)
