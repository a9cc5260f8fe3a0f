"""The symmetric square root against its laws, eigenvalues, Lyapunov's equation and generated C."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import solve_sylvester
from support.compiled import compiled

from mbcasadi import linalg

ROUNDING = 1e-13  # relative; the root of a matrix is well conditioned


def spd(rng: np.random.Generator, n: int, condition: float) -> np.ndarray:
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    M = (Q * np.logspace(0, np.log10(condition), n)) @ Q.T
    return (M + M.T) / 2


@pytest.mark.parametrize("n", [1, 4, 18])
def test_root_squared_is_the_matrix_at_any_condition(n, unroll_limit):
    f = linalg.matrix_root_fun(ca.Sparsity.dense(n, n))
    rng = np.random.default_rng(71)
    for condition in (1.0, 1e4, 1e8, 1e12):
        M = spd(rng, n, condition)
        root, inverse = (x.full() for x in f(M))
        size = np.abs(M).max()
        np.testing.assert_allclose(root @ root, M, atol=ROUNDING * size)
        np.testing.assert_array_equal(root, root.T)
        np.testing.assert_array_equal(inverse, inverse.T)
        assert np.linalg.eigvalsh(root).min() > 0
        off = np.abs(root @ inverse - np.eye(n)).max()
        assert off < ROUNDING * max(1, condition**0.5), f"condition {condition}: {off}"


def test_derivative_of_the_root_solves_lyapunovs_equation_for_repeated_eigenvalues_too():
    n = 4
    S, dS = ca.SX.sym("M", n, n), ca.SX.sym("dM", n, n)
    f = ca.Function("f", [S, dS], [ca.jtimes(linalg.matrix_root(S).root, S, dS)])
    rng = np.random.default_rng(72)
    step = rng.standard_normal((n, n))
    step = step + step.T
    for M in (np.eye(n), np.diag([1.0, 1.0, 4.0, 4.0]), spd(rng, n, 1e4)):
        w, Q = np.linalg.eigh(M)
        root = (Q * np.sqrt(w)) @ Q.T
        expected = solve_sylvester(root, root, step)  # root dR + dR root = dM
        np.testing.assert_allclose(f(M, step), expected, atol=1e-10)


def test_generated_c_of_matrix_root_equals_the_function(tmp_path):
    original = linalg.matrix_root_fun(ca.Sparsity.dense(5, 5))
    external = compiled(original, tmp_path)
    M = spd(np.random.default_rng(73), 5, 1e6)
    for expected, found in zip(original.call([M]), external.call([M]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
