"""The response of constrained motion as a dense loop in C, for rows of any rank."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.codegen.compiled_function import compiled_function
from mbcasadi.dynamics.response import response_fun
from mbcasadi.dynamics.terms import Treatment

ROUNDING = 1e-12


def independent(rng):
    return rng.standard_normal((5, 8))


def repeated(rng):
    A = rng.standard_normal((5, 8))
    A[3], A[4] = A[0] - 2 * A[1], 3 * A[2]
    return A


def switched_off(rng):
    A = rng.standard_normal((5, 8))
    A[[0, 3]] = 0.0
    return A


def nearly_dependent(rng):
    """A row that differs by 1e-5 of its length counts."""
    A = rng.standard_normal((5, 8))
    A[1] = A[0] + 1e-5 * A[1]
    return A


def none(_):
    return np.zeros((5, 8))


@pytest.fixture(scope="module")
def response():
    patterns = ca.Sparsity.dense(8, 8), ca.Sparsity.dense(5, 8)
    made = response_fun(*patterns, Treatment(compact=True), semidefinite=False)
    return made, compiled_function(made)


@pytest.mark.parametrize("rows", [independent, repeated, switched_off, nearly_dependent, none])
def test_the_loop_is_the_pseudo_inverse_in_the_metric_of_the_inertia(response, rows):
    rng = np.random.default_rng(1)
    for _ in range(20):
        root, A = rng.standard_normal((8, 8)), rows(rng)
        M = root.T @ root + np.eye(8)
        inverse_root = np.linalg.inv(np.linalg.cholesky(M))  # M⁻¹ = its square
        G = A @ inverse_root.T
        pinv = np.linalg.pinv(G, 1e-9)
        a_f = inverse_root.T @ (np.eye(8) - pinv @ G) @ inverse_root
        lam_f, N_left = -(inverse_root.T @ pinv).T, np.eye(5) - G @ pinv
        size = max(1.0, np.abs(pinv).max() ** 2)
        expected = np.block([[a_f, lam_f.T], [lam_f, -pinv.T @ pinv]])
        for f in response:
            K, *rest = map(np.array, f(M, A, np.ones(5)))
            found = [K[:13], *rest]
            for mine, other in zip(found, (expected, a_f, lam_f, N_left), strict=True):
                np.testing.assert_allclose(mine, other, atol=ROUNDING * size)
