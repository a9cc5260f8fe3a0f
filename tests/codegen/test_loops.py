"""Matrix operations that exported C writes as loops, against NumPy, in Python and in C.

One library holds all of them, in sizes below, at and above the vectors of a processor.
"""

from importlib.resources import files
from typing import Any

import casadi as ca
import numpy as np
import pytest

from mbcasadi import linalg
from mbcasadi.codegen import export_c
from mbcasadi.codegen.loops import with_loops
from mbcasadi.description.loops import LOOPS
from mbcasadi.linalg import loops, response_loops
from mbcasadi.linalg.factor import orthogonal_factor, row_factor
from mbcasadi.linalg.least_squares import least_squares

SIZES = ((1, 1, 1), (3, 7, 2), (4, 8, 5), (12, 18, 13), (9, 30, 17))  # rows, unknowns, columns
ROUNDING = 1e-11  # matrices of condition below 1e3, sums of at most 30 products
RANK_TOL = 1e-3
LANGUAGES = ("Python", "C", "C without vectors")
NO_VECTORS = ("-O0", "-U__SSE2__", "-U__aarch64__")


def pattern_of_tree(n: int) -> np.ndarray:
    """Return the lower triangle of an inertia: a base of up to four joints, then two limbs."""
    parents = [i - 1 for i in range(n)]
    if n > 6:
        parents[4 + (n - 4) // 2] = 3
    mask = np.eye(n)
    for k in range(n):
        i = parents[k]
        while i >= 0:
            mask[k, i] = 1
            i = parents[i]
    return mask


def constants_of(n: int) -> tuple[ca.DM, ca.DM]:
    """Return the last two columns of the identity (n, ·), and a sparse matrix (n, n)."""
    diagonals = np.diag(np.arange(1.0, n + 1)) - np.diag(np.ones(n - 1), -1)
    return ca.sparsify(ca.DM(np.eye(n)[:, -2:])), ca.sparsify(ca.DM(diagonals))


def operations_of(m: int, n: int, k: int) -> ca.Function:
    """Return all loops of some sizes as one Function."""
    A, B = ca.MX.sym("A", m, n), ca.MX.sym("B", n, k)
    S = ca.MX.sym("S", ca.sparsify(ca.DM(np.tri(n, k, 1) - np.tri(n, k, -3))).sparsity())
    L = ca.MX.sym("L", ca.sparsify(ca.DM(pattern_of_tree(n))).sparsity())
    H, x, y = ca.MX.sym("H", n, n), ca.MX.sym("x", n), ca.MX.sym("y", m)
    chosen, constant = constants_of(n)
    basis = linalg.row_basis(A, row_scale=1.0, rank_tol=RANK_TOL, pivot=False)
    inverse = linalg.inverse_diagonal(basis)
    nb, below = m // 2, response_loops.padded_rows
    K, a_f, C = response_loops.response(below(A), L, L, (nb, m - nb))
    first, second = response_loops.slopes(below(H), L, n // 2)
    squares, along = least_squares(ca.vertcat(L, A, L), ca.vertcat(x, y, x))
    short2 = ca.MX(ca.DM.ones(max(m, n)) * RANK_TOL**2)
    Q, QR = orthogonal_factor(A, short2[:m])
    Q_turned, QR_turned = orthogonal_factor(A.T, short2[:n])
    of_pivots = dict(
        zip(("pV", "pR", "used", "p_kept"), row_factor(A, short2[:m], True), strict=True)
    )
    outputs = {
        "K": K, "a_f": a_f, "C": C, "first_of_slopes": first, "second_of_slopes": second,
        "A_times_B": linalg.product(A, B), "A_times_S": linalg.product(A, S),
        "S_turned_times_B": linalg.product(S.T, B), "both_turned": linalg.product(B.T, A.T),
        "A_times_A_turned": linalg.product(A, A.T),
        "A_times_chosen": linalg.product(A, ca.MX(chosen)),
        "A_times_constant": linalg.product(A, ca.MX(constant).T),
        "constant_turned_times_x": linalg.product(ca.MX(constant).T, x),
        "A_times_x": linalg.product(A, x), "A_turned_times_y": linalg.product(A.T, y),
        "S_turned_times_x": linalg.product(S.T, x), "L_times_x": linalg.product(L, x),
        "gram": linalg.weighted_gram(B.T, ca.DM.ones(n) * 2, ca.DM.ones(k) * 3),
        "squares": loops.row_squares(A), "solved": linalg.tree_solve_lower(L, B),
        "solved_turned": linalg.tree_solve_transposed(L, B), "V": basis.V, "R": basis.R,
        "kept": basis.kept, "R_inverse": linalg.solve_upper(basis.R, inverse, ca.MX.eye(m)),
        "R_inverse_turned": linalg.solve_upper_transposed(basis.R, inverse, ca.MX.eye(m)),
        "factor": linalg.inverse_factor(H), "squares_of_all": squares, "slope_of_all": along,
        "Q": Q, "QR": QR, "Q_turned": Q_turned, "QR_turned": QR_turned, **of_pivots,
    }  # fmt: skip
    inputs = {"A": A, "B": B, "S": S, "L": L, "H": H, "x": x, "y": y}
    return ca.Function(
        f"loops_{m}_{n}_{k}",
        list(inputs.values()),
        [ca.densify(value) for value in outputs.values()],
        list(inputs),
        list(outputs),
    )


def values_of(m: int, n: int, k: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return matrices with zero, repeated and dependent rows in A, where it has several."""
    A = rng.standard_normal((m, n))
    if m > 3:
        A[1], A[3] = 0.0, A[0] - 2 * A[2]
    L = pattern_of_tree(n) * rng.standard_normal((n, n)) + 4 * np.eye(n)
    K = np.tril(rng.standard_normal((n, n))) + 4 * np.eye(n)
    S = (np.tri(n, k, 1) - np.tri(n, k, -3)) * rng.standard_normal((n, k))
    vectors = {"x": rng.standard_normal(n), "y": rng.standard_normal(m)}
    return {"A": A, "B": rng.standard_normal((n, k)), "S": S, "L": L, "H": K.T @ K} | vectors


@pytest.fixture(scope="module")
def evaluations(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, ...], Any]:
    """Return for each size the Function in Python and in C, of one library."""
    functions = {size: operations_of(*size) for size in SIZES}
    inputs = [ca.MX.sym("i", f.sparsity_in(i)) for f in functions.values() for i in range(f.n_in())]
    outputs, first = [], 0
    for f in functions.values():
        outputs += f.call(inputs[first : first + f.n_in()])
        first += f.n_in()
    whole = ca.Function("whole", inputs, outputs)
    project = export_c(whole, tmp_path_factory.mktemp("loops") / "whole")
    generated = {
        "C": project.load(flags=("-O0",)),
        "C without vectors": project.load(flags=NO_VECTORS),
    }
    found, first, last = {}, 0, 0
    for size, f in functions.items():
        found[size] = (f, generated, slice(first, first + f.n_in()), slice(last, last + f.n_out()))
        first, last = first + f.n_in(), last + f.n_out()
    return found


def results_of(
    evaluation: Any, language: str, given: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the outputs of one size by name."""
    f, generated, ours, answers = evaluation
    arguments = [
        ca.project(ca.DM(given[name]), f.sparsity_in(i)) for i, name in enumerate(f.name_in())
    ]
    if language == "Python":
        results = f.call(arguments)
    else:
        whole = generated[language]
        everything = [ca.DM.ones(whole.sparsity_in(i)) for i in range(whole.n_in())]
        everything[ours] = arguments
        results = whole.call(everything)[answers]
    return {name: np.array(x) for name, x in zip(f.name_out(), results, strict=True)}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("size", SIZES)
def test_loops_compute_what_numpy_does(evaluations, size, language):
    given = values_of(*size, np.random.default_rng(sum(size)))
    found = results_of(evaluations[size], language, given)
    A, B, S, L, H = (given[key] for key in "ABSLH")
    chosen, constant = (np.array(part) for part in constants_of(size[1]))
    x, y, (m, n, k) = given["x"][:, None], given["y"][:, None], size
    of_dofs, S_last = A @ L, A[m // 2 :]
    a_f, C = of_dofs[: m // 2].T @ of_dofs[: m // 2] + L, of_dofs[m // 2 :]
    K = np.block([[a_f, C.T], [C, -S_last @ S_last.T]])
    expected = {
        "K": np.vstack([K, np.zeros((-len(K) % loops.MOST_LANES, len(K)))]), "a_f": a_f, "C": C,
        "first_of_slopes": (H @ L)[: n // 2], "second_of_slopes": (H @ L)[n // 2 :],
        "A_times_B": A @ B, "A_times_chosen": A @ chosen, "A_times_constant": A @ constant.T,
        "constant_turned_times_x": constant.T @ x, "A_times_S": A @ S,
        "S_turned_times_B": S.T @ B, "both_turned": B.T @ A.T, "A_times_A_turned": A @ A.T,
        "A_times_x": A @ x, "A_turned_times_y": A.T @ y, "S_turned_times_x": S.T @ x,
        "L_times_x": L @ x, "gram": 2 * B.T @ B + 3 * np.eye(k),
        "squares": np.sum(A**2, axis=1)[:, None], "solved": np.linalg.solve(L, B),
        "solved_turned": np.linalg.solve(L.T, B),
        "squares_of_all": np.triu(A.T @ A + 2 * L.T @ L), "slope_of_all": A.T @ y + 2 * L.T @ x,
    }  # fmt: skip
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, atol=ROUNDING * 100, err_msg=key)
    assert_is_row_basis(A, found["V"], found["R"], found["kept"])
    factor = np.linalg.inv(found["factor"])
    np.testing.assert_array_equal(found["factor"], np.tril(found["factor"]))
    np.testing.assert_allclose(factor.T @ factor, H, atol=ROUNDING * np.abs(H).max() * 100)


def assert_is_row_basis(A, V, R, kept):
    """Assert `A[kept] = (V R)ᵀ` with orthonormal columns, and that dropped rows are dependent."""
    on = kept.ravel() > 0
    assert on.sum() == np.linalg.matrix_rank(A)
    np.testing.assert_allclose(V.T @ V, np.diag(kept.ravel()), atol=ROUNDING)
    np.testing.assert_allclose((V @ R).T, A, atol=ROUNDING * 100)
    np.testing.assert_array_equal(R, np.triu(R))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("size", SIZES)
def test_pivots_give_an_orthogonal_basis_whose_first_columns_span_the_rows(
    evaluations, size, language
):
    given = values_of(*size, np.random.default_rng(sum(size)))
    found = results_of(evaluations[size], language, given)
    A = given["A"]
    rank = np.linalg.matrix_rank(A)
    for Q, R, rows in (("Q", "QR", A), ("Q_turned", "QR_turned", A.T)):
        n, k = rows.shape[1], min(rows.shape)
        np.testing.assert_allclose(found[Q] @ found[Q].T, np.eye(n), atol=ROUNDING)
        np.testing.assert_allclose(found[Q][:, :k] @ found[R], rows.T, atol=ROUNDING * 100)
        assert not found[R][rank:].any()
        pivots = np.abs(found[R]).max(axis=1)
        assert np.all(np.diff(pivots[:rank]) < ROUNDING)
        assert np.all(pivots[:rank] > RANK_TOL)
        in_python = results_of(evaluations[size], "Python", given)[R]
        np.testing.assert_allclose(found[R], in_python, atol=ROUNDING * 100)
    assert found["used"].sum() == found["p_kept"].sum() == rank
    on = found["Q"][:, : min(A.shape)] * found["used"].T
    np.testing.assert_allclose(found["pV"], on, atol=ROUNDING)


@pytest.mark.parametrize("language", LANGUAGES)
def test_pivots_do_not_hide_what_is_no_number(evaluations, language):
    given = values_of(12, 18, 13, np.random.default_rng(5))
    for wrong in (np.nan, np.inf):
        for rows in (slice(4, 5), slice(None)):
            given["A"][rows, 7] = wrong
            found = results_of(evaluations[12, 18, 13], language, given)
            assert np.isnan(found["QR"]).any()


@pytest.mark.parametrize("language", LANGUAGES)
def test_solves_with_dropped_rows_leave_zeros_there(evaluations, language):
    given = values_of(12, 18, 13, np.random.default_rng(5))
    found = results_of(evaluations[12, 18, 13], language, given)
    R, kept = found["R"], found["kept"]
    solved, transposed = found["R_inverse"], found["R_inverse_turned"]
    on = kept.ravel() > 0
    assert not solved[~on].any()
    assert not transposed[~on].any()
    core = np.linalg.inv(R[np.ix_(on, on)])
    np.testing.assert_allclose(solved[np.ix_(on, on)], core, atol=ROUNDING * 100)
    np.testing.assert_allclose(transposed[np.ix_(on, on)], core.T, atol=ROUNDING * 100)


def test_a_loop_of_another_process_keeps_casadis_text(monkeypatch):
    f = operations_of(3, 7, 2)
    generator = ca.CodeGenerator("f", {"with_header": False})
    generator.add(f)
    text = str(generator.dump())
    assert "LOOPS_INLINE" in with_loops(text, "f")
    monkeypatch.setattr("mbcasadi.codegen.loops.LOOPS", {})
    assert "/* loops_product" in with_loops(text, "f")
    assert "loops_product(3, 7, 2" not in with_loops(text, "f")


def test_every_loop_has_a_routine_in_c(evaluations):
    template = files("mbcasadi.codegen").joinpath("templates", "loops.c.in").read_text()
    for loop in LOOPS.values():
        assert f"void {loop.routine}(" in template


def test_many_rows_keep_casadis_text(tmp_path):
    """The C of a row factor has room for 128 rows; more must not write beyond it."""
    A = ca.MX.sym("A", 130, 4)
    basis = linalg.row_basis(A, row_scale=1.0, rank_tol=RANK_TOL, pivot=False)
    f = ca.Function("rows", [A], [basis.V, basis.kept])
    rows = np.random.default_rng(8).standard_normal((130, 4))
    V, kept = (np.array(x) for x in export_c(f, tmp_path / "c").load()(rows))
    assert kept.sum() == 4
    np.testing.assert_allclose(V @ V.T, np.eye(4), atol=ROUNDING)


def test_tables_beyond_a_short_keep_casadis_text(monkeypatch):
    f = operations_of(3, 7, 2)
    generator = ca.CodeGenerator("f", {"with_header": False})
    generator.add(f)
    monkeypatch.setattr("mbcasadi.codegen.loops.MOST_SHORT", 1)
    text = with_loops(str(generator.dump()), "f")
    assert "loops_solve_tree(" not in text.split("LOOPS_INLINE void loops_inverse_factor")[1]
    assert "loops_product(3, 7, 2" in text
