"""Pseudo-inverses against the Moore-Penrose laws, an 80-digit reference and each other."""

from functools import cache

import casadi as ca
import mpmath
import numpy as np
import pytest
from linalg_reference import DIGITS, SHAPES_AND_RANKS, pinv_reference, sample, to_numpy
from support.compiled import compiled

from mbcasadi import linalg

REFERENCE_TOL = 1e-10
DERIVATIVE_TOL = 1e-8  # 1e-15 times powers of the condition of small integer matrices


@cache
def function(kind: type, m: int, n: int, pivot: bool) -> ca.Function:
    A, b, g = kind.sym("A", m, n), kind.sym("b", m), kind.sym("g", n)
    factor = linalg.complete_factor(A, pivot=pivot)
    out = [linalg.pinv(A, pivot=pivot), factor.pinv_times(b), factor.pinv_transposed_times(g)]
    return ca.Function("f", [A, b, g], out)


@pytest.mark.parametrize("pivot", [True, False])
@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_pseudo_inverse_agrees_with_many_digits_for_every_rank_and_shape(kind, pivot):
    rng = np.random.default_rng(21)
    for m, n, r in SHAPES_AND_RANKS:
        f = function(kind, m, n, pivot)
        for scale in (1.0, 2.0**20, 2.0**-20):
            s = sample(rng, m, n, r, scaled=False)
            A = scale * s.A
            expected = to_numpy(pinv_reference(s)) / scale
            b, g = rng.standard_normal(m), rng.standard_normal(n)
            A_pinv, x, y = (value.full() for value in f(A, b, g))
            close = {"rtol": 0, "atol": REFERENCE_TOL * max(np.abs(expected).max(), 1e-300)}
            message = f"{m}x{n} rank {r} scale {scale}"
            np.testing.assert_allclose(A_pinv, expected, err_msg=message, **close)
            close["atol"] *= 10  # sums of up to nine terms of size 2
            np.testing.assert_allclose(x.ravel(), expected @ b, err_msg=message, **close)
            np.testing.assert_allclose(y.ravel(), expected.T @ g, err_msg=message, **close)


@pytest.mark.parametrize("pivot", [True, False])
@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_factor_and_null_basis_are_those_found_one_by_one(kind, pivot):
    rng, made = np.random.default_rng(20), {}
    for m, n, r in SHAPES_AND_RANKS:
        if (m, n) not in made:
            A = kind.sym("A", m, n)
            factor, Z = linalg.complete_factor_and_null_basis(A, pivot=pivot)
            alone = linalg.complete_factor(A, pivot=pivot)
            out = [factor.basis.V, factor.U, factor.T, alone.basis.V, alone.U, alone.T, Z]
            made[m, n] = ca.Function("f", [A], out)
        *found, Z = (x.full() for x in made[m, n].call([sample(rng, m, n, r, False).A]))
        for together, one in zip(found[:3], found[3:], strict=True):
            np.testing.assert_allclose(together, one, atol=1e-14)
        V = found[0]
        np.testing.assert_allclose(V @ V.T + Z @ Z.T, np.eye(n), atol=1e-14)
        assert np.sum(np.abs(Z).max(axis=0) > 0) == n - r


def test_independent_rows_of_any_length_keep_their_accuracy():
    rng = np.random.default_rng(22)
    for m, n in [(3, 3), (3, 6), (6, 9)]:
        s = sample(rng, m, n, m, scaled=True)
        expected = to_numpy(pinv_reference(s)) * s.scale  # column i belongs to row i
        found = linalg.pinv(ca.DM(s.A)).full() * s.scale
        atol = REFERENCE_TOL * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def test_dependent_rows_of_very_unequal_length_obey_the_laws_row_by_row():
    rng = np.random.default_rng(23)
    for m, n, r in [(4, 4, 2), (6, 3, 2), (6, 9, 4)]:
        s = sample(rng, m, n, r, scaled=True)
        A_pinv = linalg.pinv(ca.DM(s.A)).full()
        # A A⁺ A = A, each row to its own length
        found = (s.A @ A_pinv @ s.A) / s.scale[:, None]
        np.testing.assert_allclose(found, s.A / s.scale[:, None], atol=REFERENCE_TOL * 10)


@pytest.mark.parametrize("pivot", [True, False])
def test_moore_penrose_laws_hold_for_every_rank(pivot, unroll_limit):
    rng = np.random.default_rng(24)
    for m, n, r in [(4, 6, 4), (4, 6, 2), (6, 4, 3), (3, 3, 0), (5, 1, 1), (0, 3, 0)]:
        A = sample(rng, m, n, r, scaled=False).A
        X = linalg.pinv_fun(ca.Sparsity.dense(m, n), pivot=pivot)(A).full()
        np.testing.assert_allclose(A @ X @ A, A, atol=REFERENCE_TOL)
        np.testing.assert_allclose(X @ A @ X, X, atol=REFERENCE_TOL)
        np.testing.assert_allclose(A @ X, (A @ X).T, atol=REFERENCE_TOL)
        np.testing.assert_allclose(X @ A, (X @ A).T, atol=REFERENCE_TOL)


def golub_pereyra(A: np.ndarray, dA: np.ndarray) -> np.ndarray:
    """Differential of A⁺ at constant rank  [Golub and Pereyra 1973, eq. 4.12]."""
    m, n = A.shape
    X = np.linalg.pinv(A, 1e-10)
    range_part = X @ X.T @ dA.T @ (np.eye(m) - A @ X)
    return -X @ dA @ X + range_part + (np.eye(n) - X @ A) @ dA.T @ X.T @ X


@pytest.mark.parametrize("pivot", [True, False])
def test_derivative_of_pseudo_inverse_is_golub_and_pereyras(pivot):
    rng = np.random.default_rng(25)
    for m, n, r in [(3, 5, 3), (4, 5, 2), (6, 4, 3), (4, 4, 4), (2, 3, 0)]:
        A, dA = ca.SX.sym("A", m, n), ca.SX.sym("dA", m, n)
        X = linalg.pinv(A, pivot=pivot)
        f = ca.Function("f", [A, dA], [ca.jtimes(X, A, dA)])
        s = sample(rng, m, n, r, scaled=False)
        mix = rng.standard_normal((m, m))
        # without pivoting the kept rows stay the same ones if rows mix with earlier rows only
        left = mix if pivot else np.tril(mix)
        step = left @ s.A + s.A @ rng.standard_normal((n, n))
        np.testing.assert_allclose(f(s.A, step), golub_pereyra(s.A, step), atol=DERIVATIVE_TOL)


def damped_reference(A: np.ndarray, damping: float) -> np.ndarray:
    with mpmath.workdps(DIGITS):
        D = mpmath.matrix(A.tolist())
        inner = D * D.T + mpmath.mpf(damping) ** 2 * mpmath.eye(A.shape[0])
        return to_numpy(D.T * mpmath.inverse(inner))


@pytest.mark.parametrize("damping", [1e-1, 1e-3, 1e-6])
def test_damped_pseudo_inverse_agrees_with_many_digits(damping):
    rng = np.random.default_rng(26)
    for m, n, r in [(3, 6, 3), (4, 5, 2), (6, 4, 3), (3, 3, 0)]:
        A = sample(rng, m, n, r, scaled=False).A
        found = linalg.damped_pinv_fun(ca.Sparsity.dense(m, n))(A, damping)
        # dependent rows leave a condition of |A| / d
        atol = 1e-15 * 100 / damping**2 if r < m else REFERENCE_TOL
        np.testing.assert_allclose(found, damped_reference(A, damping), atol=atol)


def test_bias_of_the_damped_pseudo_inverse_is_as_documented():
    U, _ = np.linalg.qr(np.random.default_rng(27).standard_normal((3, 3)))
    V, _ = np.linalg.qr(np.random.default_rng(28).standard_normal((5, 5)))
    sigma, damping = np.array([2.0, 0.1, 1e-9]), 1e-2
    A = U @ np.diag(sigma) @ V[:, :3].T
    found = np.linalg.svd(linalg.damped_pinv(ca.DM(A), damping).full())[1]
    np.testing.assert_allclose(
        np.sort(found), np.sort(sigma / (sigma**2 + damping**2)), rtol=1e-9, atol=1e-12
    )
    relative = 1 - found.max() * 0.1  # of the value 1 / 0.1, the largest here
    np.testing.assert_allclose(relative, damping**2 / (0.1**2 + damping**2), rtol=1e-6)


def test_derivative_of_damped_pseudo_inverse_is_smooth_through_a_loss_of_rank():
    s = ca.SX.sym("s")
    A = ca.vertcat(ca.horzcat(1, 0), ca.horzcat(1, s))
    f = ca.Function("f", [s], [linalg.damped_pinv(A, 0.05)])
    df = ca.Function("df", [s], [ca.jacobian(linalg.damped_pinv(A, 0.05)[:], s)])
    for value in (-1e-3, 0.0, 1e-3):
        step = 1e-5
        difference = (f(value + step) - f(value - step)).full().T.ravel() / (2 * step)
        assert np.abs(difference).max() > 1
        np.testing.assert_allclose(df(value).full().ravel(), difference, atol=1e-2, rtol=1e-4)


def test_generated_c_of_pseudo_inverse_equals_the_function(tmp_path):
    original = linalg.pinv_fun(ca.Sparsity.dense(4, 6))
    external = compiled(original, tmp_path)
    rng = np.random.default_rng(29)
    for r in (0, 2, 4):
        A = sample(rng, 4, 6, r, scaled=False).A
        np.testing.assert_allclose(external(A), original(A), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("pivot", [True, False])
def test_solves_of_large_factors_know_that_they_are_triangular(pivot):
    """A dense pattern would call a QR solver, slow and without a scalar form."""
    f = function(ca.MX, 40, 40, pivot)
    code = ca.CodeGenerator("f.c")
    code.add(f)
    assert "casadi_qr" not in code.dump()
    damped = ca.MX.sym("A", 40, 40)
    code.add(ca.Function("damped", [damped], [linalg.damped_pinv(damped, 0.1)]))
    assert "casadi_qr" not in code.dump()


def test_large_pseudo_inverse_runs_in_generated_c(tmp_path):
    original = linalg.pinv_fun(ca.Sparsity.dense(81, 82))
    external = compiled(original, tmp_path)
    s = sample(np.random.default_rng(30), 81, 82, 40, scaled=False)
    expected = np.linalg.pinv(s.G) @ np.linalg.pinv(s.F)
    np.testing.assert_allclose(external(s.A), expected, atol=1e-10)
