"""The second method, against solutions that are known, and certificates of infeasibility."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.qp.dual_active_set import _split, dual_active_set_fun
from mbcasadi.qp.solver import _problem_fun

N, M = 6, 15
PROBLEMS = 40


@pytest.fixture(scope="module")
def solve():
    function = dual_active_set_fun(M, N)

    def answer(A, lower, upper):
        x, lam, flag = function(A, lower, upper)
        return np.array(x).ravel(), np.array(lam).ravel(), int(flag)

    return answer


def unit(A):
    return A / np.linalg.norm(A, axis=1)[:, None]


def known(rng, apart):
    """Return rows, bounds and the solution, which is a sum of rows that differ little."""
    A = rng.normal(size=(M, N))
    A[1:4] = A[0] + apart * rng.normal(size=(3, N))
    A[4] = -A[0] + apart * rng.normal(size=N)
    A = unit(A)
    sides = np.array([1, 1, 1, 1, -1, 1])
    x = (sides * rng.uniform(0.1, 1, len(sides))) @ A[: len(sides)]
    lower = A @ x - rng.exponential(size=M)
    upper = A @ x + rng.exponential(size=M)
    lower[[0, 1, 2, 3, 5]], upper[4] = (A @ x)[[0, 1, 2, 3, 5]], A[4] @ x
    return A, lower, upper, x


@pytest.mark.parametrize("apart", [1.0, 1e-2, 1e-4, 1e-6])
def test_nearly_parallel_active_rows_keep_their_digits(solve, apart):
    rng = np.random.default_rng(3)
    for _ in range(PROBLEMS):
        A, lower, upper, expected = known(rng, apart)
        x, lam, flag = solve(A, lower, upper)
        assert flag == SolverFlag.OPTIMAL
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12 / apart)
        assert np.max(np.abs(x + A.T @ lam)) < 1e-12 / apart
        assert np.all(np.maximum(lower - A @ x, A @ x - upper) < 1e-12)


def test_equal_bounds_repeated_rows_and_absent_bounds_are_the_normal_case(solve):
    rng = np.random.default_rng(4)
    for _ in range(PROBLEMS):
        A = unit(rng.normal(size=(M, N)))
        A[8:12] = A[:4] * rng.choice([-1.0, 1.0], size=(4, 1))
        point = rng.normal(size=N)
        lower, upper = np.full(M, -np.inf), np.full(M, np.inf)
        lower[:4] = upper[:4] = (A @ point)[:4]
        lower[8:12] = upper[8:12] = (A @ point)[8:12]
        x, lam, flag = solve(A, lower, upper)
        assert flag == SolverFlag.OPTIMAL
        np.testing.assert_allclose(x, np.linalg.lstsq(A[:4], (A @ point)[:4])[0], atol=1e-12)
        np.testing.assert_allclose(x + A.T @ lam, 0, atol=1e-12)


@pytest.mark.parametrize("gap", [1e-6, 1e-3, 1.0])
def test_infeasible_rows_come_with_a_proof(solve, gap):
    rng = np.random.default_rng(5)
    for _ in range(PROBLEMS):
        A = rng.normal(size=(M, N))
        weights = rng.uniform(0.2, 2.0, N)
        A[N] = -weights @ A[:N]
        point = rng.normal(size=N)
        lower, upper = A @ point - 1, A @ point + 1
        upper[N] = -weights @ upper[:N] - gap
        lower[N] = -np.inf
        length = np.linalg.norm(A, axis=1)
        A, lower, upper = unit(A), lower / length, upper / length
        _, r, flag = solve(A, lower, upper)
        assert flag == SolverFlag.INFEASIBLE
        work = sum(
            ri * (hi if ri > 0 else lo) for ri, lo, hi in zip(r, lower, upper, strict=True) if ri
        )
        assert np.linalg.norm(A.T @ r) < 1e-10
        assert work < -1e-2 * gap


def test_shares_and_rest_are_exact_though_the_pseudo_inverse_is_not():
    """One pass leaves an error of the size of that of X, two leave its square."""
    rng, error = np.random.default_rng(6), 1e-6
    C = unit(rng.normal(size=(M, N)))
    X = np.zeros((M, N))
    X[:4] = (np.eye(4) + error * rng.normal(size=(4, 4))) @ np.linalg.pinv(C[:4]).T
    share, rest, length2 = (
        ca.evalf(part).full().ravel() for part in _split(ca.MX(X), ca.MX(C), one(M - 1))
    )
    np.testing.assert_allclose(C.T @ share + rest, C[-1], atol=1e-15)
    assert np.abs(C[:4] @ rest).max() < 100 * error**2
    assert length2 == pytest.approx(rest @ rest)


def one(place):
    return ca.MX(np.eye(M)[place])


def test_a_row_with_small_terms_beside_a_large_unknown_is_met_to_its_own_size():
    # DAQP's own tolerance is of x, 5e4 here: it left the first row violated by 1.6e-6 of its terms
    far = 1 / 1.95027943e-5
    A, lower = ca.DM([[1.0, 2.45 / far], [0.0, 1 / far]]), [2.450004, 1.0]
    x, lam, flag = _problem_fun("daqp", tuple(A.sparsity().compress()), False)(A, lower, ca.inf)
    assert int(flag) == SolverFlag.OPTIMAL
    np.testing.assert_allclose(x.full().ravel(), [4e-6, far], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose((x + A.T @ lam).full(), 0, atol=1e-9)
