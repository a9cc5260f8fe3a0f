"""The vector of least norm within bounds, against all sets of active rows and against SciPy."""

import itertools

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import linprog
from support.compiled import compiled

from mbcasadi.linalg import bounded_least_norm

EXACT = 1e-9


def function(m, k, kind=ca.SX):
    N, low, high = kind.sym("N", m, k), kind.sym("low", m), kind.sym("high", m)
    return ca.Function("bounded", [N, low, high], [bounded_least_norm(N, low, high)])


def by_enumeration(N, low, high):
    """The solution, from the least-norm point of every set of rows at one of their bounds."""
    # Rows of unit length: `pinv` of rows of 1e-3 beside rows of 1e3 loses six digits.
    length = np.linalg.norm(N, axis=1)
    N, low, high = N / length[:, None], low / length, high / length
    best, size, slack = None, np.inf, 1e-10
    for signs in itertools.product((-1, 0, 1), repeat=len(N)):
        on = [i for i, sign in enumerate(signs) if sign]
        target = np.array([high[i] if signs[i] > 0 else low[i] for i in on])
        if not np.all(np.isfinite(target)):
            continue
        z = np.linalg.pinv(N[on]) @ target if on else np.zeros(N.shape[1])
        inside = np.all(N @ z >= low - slack) and np.all(N @ z <= high + slack)
        if inside and np.linalg.norm(z) < size:
            best, size = z, np.linalg.norm(z)
    return best


@pytest.mark.parametrize(("m", "k"), [(1, 1), (3, 1), (3, 2), (4, 3), (5, 2)])
@pytest.mark.every(3)
def test_it_is_the_solution_of_the_quadratic_program(m, k):
    f, rng, met = function(m, k), np.random.default_rng(m + 10 * k), 0
    for _ in range(80):
        N = rng.standard_normal((m, k)) * 10 ** rng.uniform(-3, 3, (m, 1))
        centre = N @ rng.standard_normal(k)
        half = np.abs(centre) * rng.uniform(0, 1.2, m)
        low, high = centre - half, centre + half
        low[rng.random(m) < 0.2] = -np.inf
        expected = by_enumeration(N, low, high)
        np.testing.assert_allclose(f(N, low, high).full().ravel(), expected, atol=EXACT)
        met += np.linalg.norm(expected) > 0
    assert met > 40


def test_it_is_exactly_zero_where_zero_is_within_bounds():
    N = np.random.default_rng(1).standard_normal((4, 3))
    assert not np.any(function(4, 3)(N, [-1, -np.inf, -1, 0], [1, 2, np.inf, 1]).full())


def test_rows_that_repeat_or_vanish_do_no_harm():
    f = function(4, 2)
    N = np.array([[1.0, 1], [2, 2], [0, 0], [1, 1]])
    z = f(N, [-9, 3, -1, -9], [9, 9, 1, 2]).full().ravel()
    np.testing.assert_allclose(z, [0.75, 0.75], atol=EXACT)
    far = f(N, [-9, 3, 1, -9], [9, 9, 2, 2]).full()  # the row of zeros cannot be met
    np.testing.assert_allclose(far.ravel(), z, atol=EXACT)


def test_bounds_that_exclude_each_other_give_finite_numbers():
    f, rng = function(4, 2), np.random.default_rng(2)
    for _ in range(50):
        N = rng.standard_normal((4, 2))
        low = 5 * rng.standard_normal(4)
        z = f(N, low, low + 0.1).full()
        empty = linprog([0, 0], np.vstack([N, -N]), np.r_[low + 0.1, -low], bounds=(None, None))
        assert empty.status == 2
        assert np.all(np.isfinite(z))


def test_matrices_and_generated_c_give_the_same(tmp_path):
    f, rng = function(3, 2), np.random.default_rng(3)
    c, loop = compiled(f, tmp_path), function(3, 2, ca.MX)
    for _ in range(20):
        N, low = rng.standard_normal((3, 2)), rng.standard_normal(3)
        expected = f(N, low, low + 1).full()
        np.testing.assert_allclose(c(N, low, low + 1).full(), expected, atol=1e-12)
        np.testing.assert_allclose(loop(N, low, low + 1).full(), expected, atol=1e-12)
