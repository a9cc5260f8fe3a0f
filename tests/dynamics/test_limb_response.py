"""The response of motion limb by limb: laws at any rank, 50 digits at nearly singular limbs."""

import casadi as ca
import mpmath
import numpy as np
import pytest

from mbcasadi.dynamics.limb_response import limb_response_fun
from mbcasadi.linalg import RANK_TOL

NB, OWN = 3, 3  # columns of the base, and of each of two limbs
NV = NB + 2 * OWN
TOL = 1e-11
DIGITS_TOL = 1e-12  # of entries, relative to the largest
DECADES = range(0, 18, 2)


def tree_inertia(rng):
    """Return an inertia with two limbs on a base."""
    L = np.tril(rng.standard_normal((NV, NV))) + 3 * np.eye(NV)
    L[NB + OWN :, NB : NB + OWN] = 0.0
    return L.T @ L


def limb_rows(rng, sizes):
    """Return three rows of each limb whose own columns have these singular values."""
    A = np.zeros((6, NV))
    for k in range(2):
        U, V = (np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2))
        rows, columns = slice(3 * k, 3 * k + 3), slice(NB + OWN * k, NB + OWN * (k + 1))
        A[rows, :NB] = rng.standard_normal((3, NB))
        A[rows, columns] = U @ np.diag(sizes) @ V.T
    return A


def response(M, A):
    """Return a_f, a_c, lam_c, N_left; all entries of the rows of a limb count as structural."""
    filled = A != 0
    filled[~filled.any(axis=1), : NB + OWN] = True  # a row that is off, of the first limb
    patterns = (ca.sparsify(ca.DM(part.astype(float))).sparsity() for part in (M != 0, filled))
    function = limb_response_fun(*patterns, RANK_TOL)
    K, a_f, lam_f, N_left = (part.full() for part in function(M, A, np.ones(len(A))))
    n = NV + len(A)
    np.testing.assert_allclose(K[:n], K[:n].T, atol=TOL)
    assert np.array_equal(K[:NV, :NV], a_f)
    assert np.array_equal(K[NV:n, :NV], lam_f)
    return a_f, K[:NV, NV:], K[NV:n, NV:], N_left


@pytest.mark.parametrize("case", ["full rank", "repeated rows", "singular limb", "a row is off"])
def test_the_response_solves_the_equations_of_motion_at_any_rank(case):
    rng = np.random.default_rng(11)
    M = tree_inertia(rng)
    A = limb_rows(rng, [1.0, 0.7, 0.4])
    if case == "repeated rows":
        A = np.vstack([A, 2 * A[1], A[4] - A[3]])
    if case == "singular limb":  # the last row of each limb acts on the base alone, in one way
        A = limb_rows(rng, [1.0, 0.7, 0.0])
        A[:, :NB] = A[:, NB : NB + OWN] @ rng.standard_normal((OWN, NB)) + A[
            :, NB + OWN :
        ] @ rng.standard_normal((OWN, NB))
    if case == "a row is off":
        A[2] = 0.0
    a_f, a_c, lam_c, N_left = response(M, A)
    reached = A @ np.linalg.pinv(A, RANK_TOL)
    rank = {"full rank": 6, "repeated rows": 6, "singular limb": 4, "a row is off": 5}[case]
    assert np.linalg.matrix_rank(A, 1e-9) == rank
    np.testing.assert_allclose(M @ a_f, np.eye(NV) + A.T @ a_c.T, atol=TOL)
    np.testing.assert_allclose(A @ a_f, 0, atol=TOL)
    np.testing.assert_allclose(M @ a_c, A.T @ lam_c, atol=TOL)
    np.testing.assert_allclose(A @ a_c, -reached, atol=TOL)  # least squares
    np.testing.assert_allclose(reached @ lam_c, lam_c, atol=TOL)  # of minimum norm
    np.testing.assert_allclose(N_left, np.eye(len(A)) - reached, atol=TOL)
    np.testing.assert_allclose(a_f, a_f.T, atol=TOL)


@pytest.mark.parametrize("decade", [*DECADES, None])
def test_a_limb_that_becomes_singular_keeps_all_digits(decade):
    rng = np.random.default_rng(12)
    M, size = tree_inertia(rng), 0.0 if decade is None else 10.0**-decade
    A = limb_rows(rng, [1.0, 0.7, size])
    a_f, a_c, lam_c, _ = response(M, A)
    with mpmath.workdps(50):
        K = mpmath.zeros(NV + 6)
        for i in range(NV):
            for j in range(NV):
                K[i, j] = mpmath.mpf(float(M[i, j]))
            for j in range(6):
                K[i, NV + j], K[NV + j, i] = -mpmath.mpf(float(A[j, i])), mpmath.mpf(float(A[j, i]))
        inverse = np.array((K**-1).tolist(), dtype=float)
    expected = inverse[:NV, :NV], -inverse[:NV, NV:], -inverse[NV:, NV:]
    for found, reference in zip((a_f, a_c, lam_c), expected, strict=True):
        size_of = np.abs(reference).max()
        np.testing.assert_allclose(found, reference, rtol=0, atol=DIGITS_TOL * size_of)


def test_no_rows_leave_the_inverse_of_the_inertia():
    M = tree_inertia(np.random.default_rng(13))
    function = limb_response_fun(ca.sparsify(ca.DM(M)).sparsity(), ca.Sparsity(0, NV), RANK_TOL)
    a_f = function(M, ca.DM(0, NV), ca.DM(0, 1))[1].full()
    np.testing.assert_allclose(a_f @ M, np.eye(NV), atol=TOL)
