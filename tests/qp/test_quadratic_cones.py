"""Residuals of cones see what a wrong answer violates."""

import casadi as ca
import numpy as np

from mbcasadi.qp import quadratic_cones

LOWER, UPPER = ca.SX([-1.0, 0.0, 0.0, 0.0]), ca.SX([1.0, 0.0, 0.0, 0.0])  # a row, then a cone


def numbers(expression):
    return np.array(ca.evalf(expression)).ravel()


def test_a_force_outside_its_cone_is_a_violation_by_what_friction_lacks():
    found = quadratic_cones.violations(ca.SX([2.0, 1.0, 3.0, 4.0]), LOWER, UPPER, 1)
    np.testing.assert_allclose(numbers(found), [1.0, 4.0, 0.0, 0.0])
    inside = quadratic_cones.violations(ca.SX([0.0, 5.0, 3.0, 4.0]), LOWER, UPPER, 1)
    assert not np.any(numbers(inside))


def test_multipliers_are_moved_into_the_dual_cone():
    outside = quadratic_cones.in_dual_cones(ca.SX([0.3, -1.0, 3.0, 4.0]), 1)
    np.testing.assert_allclose(numbers(outside), [0.3, -5.0, 3.0, 4.0])
    pulling = quadratic_cones.in_dual_cones(ca.SX([0.3, 2.0, 0.0, 0.0]), 1)
    np.testing.assert_allclose(numbers(pulling), [0.3, 0.0, 0.0, 0.0])
    within = ca.SX([0.3, -6.0, 3.0, 4.0])
    np.testing.assert_allclose(numbers(quadratic_cones.in_dual_cones(within, 1)), numbers(within))


def test_the_gap_is_the_product_of_force_and_multiplier():
    mu, value = ca.SX([2.0, -5.0, 3.0, 4.0]), ca.SX([0.5, 5.0, 3.0, 4.0])
    found = quadratic_cones.gaps(mu, value, LOWER, UPPER, 1)
    np.testing.assert_allclose(numbers(found), [1.0, 0.0, 0.0, 0.0])
    off = quadratic_cones.gaps(mu, ca.SX([0.5, 6.0, 3.0, 4.0]), LOWER, UPPER, 1)
    np.testing.assert_allclose(numbers(off), [1.0, 5.0, 0.0, 0.0])


def test_a_warm_start_of_any_content_is_made_harmless():
    given = ca.SX([7.0, np.nan, 1e9, -0.6])
    np.testing.assert_allclose(numbers(quadratic_cones.warm_values(given, 1)), [1, 0, 0, -0.6])
