"""The inverse of the equations of motion, by laws that it must obey whatever the rank."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.dynamics.response import response
from mbcasadi.dynamics.terms import Treatment

NV = 5
TOL = 1e-11


def matrices(rows, semidefinite):
    """Return M and A with the rows of a random matrix in this order, -1 for a row of zeros."""
    rng = np.random.default_rng(7)
    basis = np.vstack([rng.standard_normal((3, NV)), np.zeros(NV)])
    A = basis[rows] * rng.uniform(0.5, 2, (len(rows), 1))
    root = rng.standard_normal((NV, NV))
    M = root @ root.T + np.eye(NV)
    if semidefinite:  # no inertia along the first row, which the constraint holds
        n = basis[0] / np.linalg.norm(basis[0])
        P = np.eye(NV) - np.outer(n, n)
        M = P @ M @ P
    return M, A


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
@pytest.mark.parametrize("pivot", [True, False])
@pytest.mark.parametrize("semidefinite", [False, True])
@pytest.mark.parametrize("rows", [[0, 1], [0, 1, 0], [0, -1, 2, 2]])
def test_the_response_solves_the_equations_of_motion(kind, pivot, semidefinite, rows):
    M, A = matrices(rows, semidefinite)
    nc = len(rows)
    s = kind.sym("M", NV, NV), kind.sym("A", nc, NV)
    unit = response(*s, Treatment(pivot=pivot).rule(1.0), semidefinite)
    made = ca.Function("response", [*s], [unit.a_f, unit.a_c, unit.lam_c])
    a_f, a_c, lam_c = (part.full() for part in made(M, A))
    reached = A @ np.linalg.pinv(A)
    np.testing.assert_allclose(M @ a_f, np.eye(NV) + A.T @ a_c.T, atol=TOL)
    np.testing.assert_allclose(A @ a_f, 0, atol=TOL)
    np.testing.assert_allclose(M @ a_c, A.T @ lam_c, atol=TOL)
    np.testing.assert_allclose(A @ a_c, -reached, atol=TOL)  # least squares
    np.testing.assert_allclose(reached @ lam_c, lam_c, atol=TOL)  # of minimum norm
    np.testing.assert_allclose(reached @ a_c.T, a_c.T, atol=TOL)
    np.testing.assert_allclose(a_f, a_f.T, atol=TOL)
