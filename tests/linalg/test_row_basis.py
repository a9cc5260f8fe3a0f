"""Row bases, projectors, ranks and null bases against laws and an 80-digit reference."""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from linalg_reference import (
    SHAPES_AND_RANKS,
    projector_reference,
    quadruped_contact_pattern,
    sample,
)
from support.compiled import compiled

from mbcasadi import linalg
from mbcasadi.linalg import gram_schmidt, symbols

ONE_PASS_ROUNDING = 1e-14  # sums of ten products, times one over the remainder that is kept
REFERENCE_TOL = 1e-10  # the promise; what is found is about 1e-15 times the condition
ROUNDING = 1e-12  # laws of orthonormal matrices of at most 82 rows
DERIVATIVE_TOL = 1e-8  # 1e-15 times the square of the condition of integer matrices
PROJECTOR_BUDGET = 15_000  # operations for a quadruped's four feet


@cache
def everything_fun(shape, kind, pivot, _limit):
    S = kind.sym("A", *shape)
    basis = linalg.row_basis(S, pivot=pivot)
    values = {"V": basis.V, "R": basis.R, "used": basis.used, "kept": basis.kept}
    values |= {"rank": basis.rank, "P": linalg.projector(S, pivot=pivot)}
    values |= {"Z": linalg.null_basis(S)}
    return ca.Function("f", [S], list(values.values()), ["A"], list(values))


def evaluate(A, kind, pivot):
    """Return all that is made of the rows, by name."""
    f = everything_fun(A.shape, kind, pivot, symbols.UNROLL_LIMIT)
    return {name: x.full() for name, x in f(A=A).items()}


@pytest.mark.parametrize("pivot", [True, False])
@pytest.mark.parametrize("scaled", [False, True])
def test_projector_agrees_with_many_digits_for_every_rank_and_shape(scaled, pivot):
    rng = np.random.default_rng(11)
    for m, n, r in SHAPES_AND_RANKS:
        for _ in range(3):
            s = sample(rng, m, n, r, scaled)
            found = evaluate(s.A, ca.SX, pivot)
            case = f"{m}x{n} rank {r} scaled {scaled} pivot {pivot}"
            assert found["rank"].item() == r, case
            error = np.abs(found["P"] - projector_reference(s)).max()
            assert error < REFERENCE_TOL, f"{case}: {error}"


@pytest.mark.parametrize("pivot", [True, False])
@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_laws_of_row_basis_hold_for_every_rank(kind, pivot, unroll_limit):
    rng = np.random.default_rng(5)
    for m, n, r in [(4, 6, 4), (4, 6, 2), (6, 4, 3), (3, 3, 0), (5, 1, 1), (0, 3, 0)]:
        A = sample(rng, m, n, r, scaled=False).A
        x = evaluate(A, kind, pivot)
        size = max(1.0, np.abs(A).max(initial=0))
        close = {"atol": ROUNDING * size, "rtol": 0}
        np.testing.assert_allclose(x["V"] @ x["R"], A.T, **close)
        np.testing.assert_allclose(x["V"].T @ x["V"], np.diag(x["used"].ravel()), **close)
        np.testing.assert_allclose(x["P"] @ x["P"], x["P"], **close)
        np.testing.assert_allclose(A @ x["P"], 0, **close)
        np.testing.assert_allclose(A @ x["Z"], 0, **close)
        np.testing.assert_allclose(x["Z"] @ x["Z"].T, x["P"], **close)
        np.testing.assert_allclose(x["Z"].T @ x["Z"], np.diag(np.arange(n) >= r), **close)
        np.testing.assert_array_equal(x["P"], x["P"].T)
        assert x["kept"].sum() == x["used"].sum() == x["rank"].item() == r
        if pivot:
            np.testing.assert_array_equal(x["used"].ravel(), np.arange(min(m, n)) < r)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
@pytest.mark.parametrize("pivot", [True, False])
def test_nearly_dependent_rows_still_give_an_orthonormal_basis(kind, pivot):
    """Läuchli's matrix: one pass of Gram-Schmidt would leave columns at 60 degrees."""
    e = 2.0**-28
    A = np.array([[1, e, 0, 0], [1, 0, e, 0], [1, 0, 0, e]])
    x = evaluate(A, kind, pivot)
    assert x["rank"].item() == 3
    np.testing.assert_allclose(x["V"].T @ x["V"], np.eye(3), atol=ROUNDING)
    normal = np.array([-e, 1, 1, 1]) / np.sqrt(3 + e**2)
    np.testing.assert_allclose(x["P"], np.outer(normal, normal), atol=1e-15 / e)


@pytest.mark.parametrize("pivot", [True, False])
def test_a_row_is_dropped_exactly_below_the_threshold(pivot):
    A = ca.MX.sym("A", 2, 2)
    scale = ca.MX.sym("scale", 2)
    rank = linalg.row_basis(A, row_scale=scale, rank_tol=1e-10, pivot=pivot).rank
    f = ca.Function("f", [A, scale], [rank])
    for factor, expected in [(0.99, 1), (1.01, 2)]:
        remainder = 1e-10 * factor
        # against the row's own length
        assert f(ca.DM([[1.0, 0.0], [1.0, remainder]]), ca.DM([0, 0])) == expected
        assert f(ca.DM([[1.0, 0.0], [1e3, 1e3 * remainder]]), ca.DM([0, 0])) == expected
        # against the absolute scale, row by row
        assert f(ca.DM([[1.0, 0.0], [0.0, remainder]]), ca.DM([1, 1])) == expected
        assert f(ca.DM([[1.0, 0.0], [0.0, 1e-6 * remainder]]), ca.DM([1, 1e-6])) == expected
        assert f(ca.DM([[1.0, 0.0], [0.0, 1e4 * remainder]]), ca.DM([1, 1e4])) == expected


@pytest.mark.parametrize("pivot", [True, False])
def test_a_single_vanishing_row_is_dropped_only_by_an_absolute_scale(pivot):
    A = np.array([[1e-13, -2e-13, 1e-13]])
    assert linalg.rank(ca.DM(A), pivot=pivot) == 0
    np.testing.assert_array_equal(linalg.projector(ca.DM(A), pivot=pivot), np.eye(3))
    assert linalg.rank(ca.DM(A), row_scale=1e-6, pivot=pivot) == 1


def test_given_row_norms_take_the_place_of_the_rows_own():
    A = ca.DM([[1.0, 0.0], [1e-9, 1e-9]])
    assert linalg.row_basis(A, row_scale=0).rank == 2
    assert linalg.row_basis(A, row_scale=0, row_norms=ca.DM([1, 100])).rank == 1


def golub_pereyra_projector(A: np.ndarray, dA: np.ndarray) -> np.ndarray:
    """d(I - A⁺A) = -(A⁺ dA P) - (A⁺ dA P)ᵀ  [Golub and Pereyra 1973, eq. 4.11]."""
    A_pinv = np.linalg.pinv(A, 1e-10)
    across = A_pinv @ dA @ (np.eye(A.shape[1]) - A_pinv @ A)
    return -(across + across.T)


@pytest.mark.parametrize("pivot", [True, False])
def test_derivative_of_projector_is_golub_and_pereyras(pivot, unroll_limit):
    rng = np.random.default_rng(2)
    for m, n, r in [(3, 5, 3), (4, 5, 2), (6, 4, 3), (2, 3, 0)]:
        A, dA = ca.MX.sym("A", m, n), ca.MX.sym("dA", m, n)
        P = linalg.projector(A, pivot=pivot)
        forward = ca.Function("forward", [A, dA], [ca.jtimes(P, A, dA)])
        reverse = ca.Function("reverse", [A], [ca.jacobian(ca.sum(P[:]), A)])
        s = sample(rng, m, n, r, scaled=False)
        dF, dG = rng.standard_normal(s.F.shape), rng.standard_normal(s.G.shape)
        step = dF @ s.G + s.F @ dG  # keeps the rank
        expected = golub_pereyra_projector(s.A, step)
        np.testing.assert_allclose(forward(s.A, step), expected, atol=DERIVATIVE_TOL)
        gradient = reverse(s.A).full().reshape(n, m).T
        np.testing.assert_allclose(np.sum(gradient * step), expected.sum(), atol=DERIVATIVE_TOL)


def test_derivative_of_projector_agrees_with_finite_differences():
    rng = np.random.default_rng(8)
    s = sample(rng, 5, 6, 3, scaled=False)
    dG = rng.standard_normal(s.G.shape)
    S = ca.SX.sym("A", 5, 6)
    f = ca.Function("f", [S], [linalg.projector(S)])
    step = 1e-6
    plus, minus = (s.F @ (s.G + sign * step * dG) for sign in (1, -1))
    difference = (f(plus) - f(minus)).full() / (2 * step)
    assert np.abs(difference).max() > 0.01
    expected = golub_pereyra_projector(s.A, s.F @ dG)
    np.testing.assert_allclose(difference, expected, atol=1e-8)  # step² and rounding / step


@pytest.mark.parametrize("pivot", [True, False])
def test_derivatives_stay_finite_at_dropped_and_vanishing_rows(pivot):
    A = ca.SX.sym("A", 4, 3)
    basis = linalg.row_basis(A, pivot=pivot)
    everything = ca.vertcat(basis.V[:], basis.R[:], linalg.projector(A, pivot=pivot)[:])
    f = ca.Function("f", [A], [ca.jacobian(everything, A)])
    for value in (np.zeros((4, 3)), np.eye(4, 3), np.outer([1, 0, 2, -1], [1.0, 0, 0])):
        assert np.all(np.isfinite(f(value).full()))


def test_projector_of_four_feet_uses_their_structure():
    pattern = quadruped_contact_pattern()
    sparse = linalg.projector_fun(pattern, pivot=False)
    dense = linalg.projector_fun(ca.Sparsity.dense(12, 18), pivot=False)
    assert sparse.n_instructions() <= PROJECTOR_BUDGET
    assert sparse.n_instructions() < 0.7 * dense.n_instructions()
    rng = np.random.default_rng(3)
    for _ in range(20):
        A = ca.DM(pattern, rng.standard_normal(pattern.nnz()))
        full = A.full()
        expected = np.eye(18) - np.linalg.pinv(full) @ full
        np.testing.assert_allclose(sparse(A), expected, atol=REFERENCE_TOL)


@pytest.mark.parametrize("pivot", [True, False])
def test_generated_c_of_row_basis_equals_the_function(pivot, tmp_path):
    function = linalg.row_basis_fun(ca.Sparsity.dense(5, 7), pivot=pivot)
    external = compiled(function, tmp_path)
    rng = np.random.default_rng(4)
    for r in (0, 2, 5):
        A = sample(rng, 5, 7, r, scaled=True).A
        for expected, found in zip(function.call([A]), external.call([A]), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("pivot", [True, False])
def test_large_matrices_become_loops_in_short_c(pivot, tmp_path):
    function = linalg.projector_fun(ca.Sparsity.dense(81, 82), pivot=pivot)
    external = compiled(function, tmp_path)
    assert (tmp_path / "projector_c.c").read_text().count("\n") < 8_000  # not 3 million
    rng = np.random.default_rng(6)
    for r in (81, 40):
        s = sample(rng, 81, 82, r, scaled=False)
        A_pinv = np.linalg.pinv(s.G) @ np.linalg.pinv(s.F)
        expected = np.eye(82) - A_pinv @ s.A
        # the integer matrix of full rank has a condition of up to 1e4
        np.testing.assert_allclose(external(s.A), expected, atol=1e-9)
        np.testing.assert_allclose(external(s.A), function(s.A), atol=ROUNDING * 10)


@pytest.mark.parametrize("name", ["projector", "rank", "null_basis", "pinv"])
def test_each_function_equals_its_expression_and_takes_a_row_scale(name):
    A = ca.DM([[1.0, 2.0, 0.0], [2e-8, 4e-8, 1e-8]])
    for scale in (1.0, 1e-8, ca.DM([1.0, 1e3])):
        function = getattr(linalg, f"{name}_fun")(A.sparsity(), row_scale=scale)
        expected = getattr(linalg, name)(A, row_scale=scale)
        np.testing.assert_array_equal(function(A), expected)
    coarse = linalg.rank_fun(A.sparsity(), row_scale=ca.DM([1.0, 1e3]))(A)
    assert (coarse, linalg.rank(A, row_scale=1.0)) == (1, 2)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
@pytest.mark.parametrize("pivot", [True, False])
def test_nan_and_infinity_are_not_taken_for_dependent_rows(kind, pivot):
    for bad in (np.nan, np.inf):
        A = np.array([[1.0, 2.0, 0.0], [bad, 0.0, 1.0]])
        assert np.any(np.isnan(evaluate(A, kind, pivot)["P"]))


@pytest.mark.parametrize("remainder", [1.0, 1e-2, 3e-4])
def test_one_pass_in_order_is_orthogonal_where_only_clear_rows_are_kept(remainder):
    """The last row leaves `remainder` of itself beside the others; one more is dropped."""
    rng = np.random.default_rng(31)
    for _ in range(20):
        A = rng.standard_normal((6, 10))
        A[4] = A[:4].T @ rng.standard_normal(4)
        A[4] += remainder * np.linalg.norm(A[4]) * np.linalg.svd(A[:4])[2][-1]
        A[5] = A[:5].T @ rng.standard_normal(5)
        symbol = ca.SX.sym("A", 6, 10)
        basis = linalg.row_basis(symbol, rank_tol=1e-4, pivot=False)
        numbers = ca.Function("basis", [symbol], [basis.V, basis.R, basis.kept])
        V, R, kept = (np.array(out) for out in numbers(A))
        np.testing.assert_array_equal(kept.ravel(), [1, 1, 1, 1, 1, 0])
        np.testing.assert_allclose(
            V.T @ V, np.diag(kept.ravel()), atol=ONE_PASS_ROUNDING / remainder
        )
        np.testing.assert_allclose(V @ R[:, :5], A[:5].T, atol=1e-13)


def test_one_pass_takes_fewer_operations_than_two():
    symbol = ca.SX.sym("A", 12, 18)
    counts = [
        ca.Function("V", [symbol], [linalg.row_basis(symbol, rank_tol=tol, pivot=False).V])
        for tol in (1e-4, 1e-10)
    ]
    assert counts[0].n_instructions() < 0.7 * counts[1].n_instructions()


@pytest.mark.parametrize("filled", [0.3, 1.0])
@pytest.mark.parametrize("shape", [(3, 5), (6, 10), (12, 18)])
def test_operations_are_estimated_within_a_factor_of_two(shape, filled):
    """Loops take the place of plain code by this estimate."""
    places = np.random.default_rng(0).random(shape) < filled
    A = ca.SX.sym("A", ca.sparsify(ca.DM(places.astype(float))).sparsity())
    actual = ca.Function("V", [A], [linalg.row_basis(A, pivot=False).V])
    inputs_and_outputs = actual.nnz_in() + actual.nnz_out()
    ratio = gram_schmidt.operations(A.sparsity()) / (actual.n_instructions() - inputs_and_outputs)
    assert 0.5 < ratio < 2
