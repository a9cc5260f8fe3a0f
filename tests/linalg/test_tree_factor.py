"""Tree factors and elimination without row exchanges against laws and generated C."""

import casadi as ca
import numpy as np
import pytest
from support.compiled import compiled

from mbcasadi import linalg

ROUNDING = 1e-12  # matrices of condition below 1e3
PARENTS = [-1, 0, 1, 1, 3, 1, 5, 6, 0]  # a tree with several branches


def tree_mask() -> np.ndarray:
    """Return which joints are coupled: those on one path to the root."""
    n = len(PARENTS)
    mask = np.eye(n)
    for k in range(n):
        i = PARENTS[k]
        while i >= 0:
            mask[k, i] = mask[i, k] = 1
            i = PARENTS[i]
    return mask


def tree_inertia(rng: np.random.Generator) -> np.ndarray:
    mask = np.tril(tree_mask())
    L = mask * rng.standard_normal(mask.shape) + 4 * np.eye(len(mask))
    return L.T @ L


@pytest.fixture
def pattern() -> ca.Sparsity:
    return ca.sparsify(ca.DM(tree_mask())).sparsity()


def test_tree_factor_reproduces_the_inertia(pattern, unroll_limit):
    f = linalg.tree_cholesky_fun(pattern)
    M = tree_inertia(np.random.default_rng(1))
    L = f(M).full()
    np.testing.assert_allclose(L.T @ L, M, atol=ROUNDING * np.abs(M).max())
    np.testing.assert_array_equal(L, np.tril(L))


def test_tree_factor_fills_no_zero_of_the_tree(pattern):
    assert linalg.tree_cholesky_fun(pattern).nnz_out() == ca.tril(pattern).nnz()


def test_a_force_on_one_joint_spreads_to_its_ancestors_only(pattern):
    L = linalg.tree_cholesky(ca.SX.sym("M", pattern))
    force = ca.SX(9, 1)
    force[7] = ca.SX.sym("f")
    assert linalg.tree_solve_transposed(L, force).sparsity().row() == [0, 1, 5, 6, 7]


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_tree_solve_inverts_the_inertia(pattern, columns, unroll_limit):
    rng = np.random.default_rng(2)
    M, b = tree_inertia(rng), rng.standard_normal((9, columns))
    x = linalg.tree_solve_fun(pattern, columns)(M, b).full()
    np.testing.assert_allclose(M @ x, b, atol=ROUNDING * np.abs(M).max())


def test_derivative_of_tree_solve_is_minus_the_inverse_twice():
    n = 4
    M, b = ca.SX.sym("M", n, n), ca.SX.sym("b", n)
    x = linalg.tree_solve(linalg.tree_cholesky(M), b)
    dM = ca.SX.sym("dM", n, n)
    f = ca.Function("f", [M, b, dM], [ca.jtimes(x, M, dM)])
    rng = np.random.default_rng(3)
    X, dX, value = rng.standard_normal((n, n)), rng.standard_normal((n, n)), rng.standard_normal(n)
    M0, dM0 = X @ X.T + np.eye(n), dX + dX.T
    expected = -np.linalg.solve(M0, dM0 @ np.linalg.solve(M0, value))
    np.testing.assert_allclose(f(M0, value, dM0).full().ravel(), expected, atol=ROUNDING * 10)


@pytest.mark.parametrize(("kind", "n"), [(ca.SX, 1), (ca.SX, 6), (ca.MX, 6), (ca.MX, 40)])
def test_positive_solve_needs_no_symmetry(kind, n):
    rng = np.random.default_rng(4)
    X, K = rng.standard_normal((n, n)), rng.standard_normal((n, n))
    units = np.diag(10.0 ** rng.uniform(-3, 3, n))  # metres and millimetres in one matrix
    core = X @ X.T + np.eye(n) + 3 * (K - K.T)
    expected = rng.standard_normal((n, 2))
    A, b = kind.sym("A", n, n), kind.sym("b", n, 2)
    f = ca.Function("f", [A, b], [linalg.positive_solve(A, b)])
    found = f(units @ core @ units, units @ core @ units @ expected)
    np.testing.assert_allclose(units @ found.full(), units @ expected, atol=1e-9)
    assert f.expand().is_a("SXFunction")  # no plugin inside: scalars may be put in


def test_generated_c_of_tree_solve_equals_the_function(pattern, tmp_path):
    rng = np.random.default_rng(5)
    for original in (linalg.tree_solve_fun(pattern, 2), linalg.tree_solve_fun(pattern, 1)):
        folder = tmp_path / str(original.size2_in(1))
        folder.mkdir()
        external = compiled(original, folder)
        M, b = tree_inertia(rng), rng.standard_normal(original.size_in(1))
        np.testing.assert_allclose(external(M, b), original(M, b), rtol=1e-13, atol=1e-15)


def test_large_inertias_become_loops_in_short_c(tmp_path):
    original = linalg.tree_solve_fun(ca.Sparsity.dense(80, 80))
    external = compiled(original, tmp_path)
    assert (tmp_path / "tree_solve_c.c").read_text().count("\n") < 6_000
    rng = np.random.default_rng(6)
    X, b = rng.standard_normal((80, 80)), rng.standard_normal(80)
    M = X @ X.T + np.eye(80)
    np.testing.assert_allclose(external(M, b).full().ravel(), np.linalg.solve(M, b), atol=1e-10)
