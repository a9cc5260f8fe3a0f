"""Every formulation against an independent reference, MuJoCo and the laws, by the thousand."""

import numpy as np
import pytest
from support.admissible_states import admissible_states, drifted_states, pinv, times
from support.constrained_mechanisms import MECHANISMS, Mechanism, mechanism
from support.formulation_variants import labelled, motion, variants
from support.motion_references import (
    acceleration_scale,
    force_scale,
    lengths,
    mujoco_motion,
    multiplier_scale,
    reference_motion,
    rounding_of_least_squares,
    worst,
)

AGREEMENT_TOL = 1e-10  # the promise: relative to the scales of `references`
ROUNDINGS = 10  # of the condition of contradicting rows, see `rounding_of_least_squares`
MUJOCO_TOL = 1e-9  # the promise; MuJoCo computes its own M, J and bias


def count(it: Mechanism) -> int:
    """Return on how many states a mechanism is looked at."""
    return 1000 if it.system.nv < 20 else 100


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.every(10)
def test_all_formulations_give_one_acceleration_and_one_constraint_force(name):
    """Against a null-space solution in NumPy and, for MJCF, against MuJoCo's own matrices."""
    it = mechanism(name)
    states = admissible_states(it, count(it))
    expected = reference_motion(it, states)
    assert expected.a.shape == (count(it), it.system.nv)
    peer = None if it.model is None else mujoco_motion(it, states)
    sizes = {
        "a": acceleration_scale(expected),
        "f_c": force_scale(expected),
        "lam": multiplier_scale(expected),
    }
    for label in variants(it):
        found = motion(it, label, states)
        for key, size in sizes.items():
            error = worst(found[key] - getattr(expected, key), size)
            assert error < AGREEMENT_TOL, f"{name}: {key} of {label} is off by {error:.1e}"
            if peer is not None and key != "lam":
                error = worst(found[key] - getattr(peer, key), size)
                assert error < MUJOCO_TOL, f"{name}: {key} of {label} is {error:.1e} off MuJoCo's"


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.every(8)
def test_drifted_and_rheonomic_rows_hold_in_the_least_squares_sense(name):
    """`Q a = -A⁺ c` whatever the state, and `M a + h - f` is a combination of the rows.

    With a `row_scale` of its own every row counts, also those that only the gap makes independent.
    """
    it = mechanism(name)
    states = drifted_states(it, count(it) // 2)
    expected = reference_motion(it, states)
    A_pinv = pinv(expected.A)
    required = -times(A_pinv, expected.c)
    # 2 % of the drifted states of the overconstrained loops have a condition above 1e5
    rounding = ROUNDINGS * rounding_of_least_squares(expected)
    sizes = np.maximum(acceleration_scale(expected), rounding / AGREEMENT_TOL)
    # off the manifold a nearly singular A, as of the overconstrained loop, has large lam
    pushed_scale = np.maximum(
        force_scale(expected), np.linalg.norm(expected.A, axis=(1, 2)) * lengths(expected.lam)
    )
    for label in variants(it):
        found = motion(it, label, states, row_scale=1.0)
        across = times(A_pinv, times(expected.A, found["a"]))
        error = worst(across - required, sizes)
        assert error < AGREEMENT_TOL, f"{name}: {label} leaves Q a = -A⁺ c by {error:.1e}"
        error = worst(found["a"] - expected.a, sizes)
        assert error < AGREEMENT_TOL, f"{name}: a of {label} is off by {error:.1e}"
        rest = times(expected.M, found["a"]) + expected.h - expected.f
        pushed = times(np.swapaxes(expected.A, 1, 2), found["lam"])
        error = worst(rest - pushed, pushed_scale)
        assert error < AGREEMENT_TOL, f"{name}: {label} breaks Newton's law by {error:.1e}"


def test_drifted_states_break_the_constraints():
    """The law above would hold by itself where c is consistent: here it is not."""
    for name in ("moving_pendulum", "climbing_particle", "bennett"):
        it = mechanism(name)
        at = reference_motion(it, drifted_states(it, 50))
        gap = at.c - times(at.A, times(pinv(at.A), at.c))
        assert np.median(lengths(gap) / lengths(at.c)) > 1e-3, name


def test_every_kind_of_constraint_is_among_the_mechanisms():
    kinds = {kind for name in MECHANISMS for kind in mechanism(name).kinds}
    assert kinds >= {
        "redundant",
        "singular",
        "floating base",
        "ball joints",
        "non-holonomic",
        "nonlinear in v",
        "affine",
        "rheonomic",
        "switched",
        "semidefinite",
        "elastic",
        "no freedom left",
        "unconstrained",
        "a row of zeros",
    }
    assert sum(count(mechanism(name)) == 1000 for name in MECHANISMS) >= 20


def test_every_formulation_is_among_the_variants():
    names = {label.split()[0] for label in labelled()}
    assert names == {
        "lagrange",
        "projection",
        "virtual_mass",
        "quasi_velocity",
        "udwadia_kalaba",
        "null_space",
        "limbwise",
    }
    assert len(labelled()) == 13
