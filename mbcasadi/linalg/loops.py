"""Matrix operations on MX that become loops in the generated C.

Each is a Function with a name of its own. In Python CasADi evaluates its body, which gives the
same numbers up to rounding; in exported C a loop stands in its place (`description/loops.py`).
Loops run along the columns of CasADi's matrices, which are contiguous in memory.
"""

import hashlib
from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from mbcasadi.description.loops import LOOPS, Loop
from mbcasadi.linalg import gram_schmidt
from mbcasadi.linalg.symbols import named_function

MOST_LANES = 8
"""Numbers in a vector of a processor, at most."""

MOST_ROWS = 128
"""Rows of a row factor in C, `LOOPS_ROWS` of `loops.c.in`, and columns of one with pivots; larger
ones keep CasADi's text."""

Body = Callable[..., Sequence[ca.MX]]


def loop_function(
    routine: str,
    patterns: Sequence[ca.Sparsity],
    body: Body,
    *,
    sizes: Sequence[int],
    tables: Sequence[Sequence[int]] = (),
    work: int = 0,
) -> ca.Function:
    """Return a Function of matrices with these patterns, and record its loop.

    Args:
        routine: name of the C routine.
        patterns: of the inputs.
        body: from the inputs to the outputs, what Python evaluates.
        sizes, tables, work: see `Loop`.
    """
    arguments = [ca.MX.sym(f"x{i}", pattern) for i, pattern in enumerate(patterns)]
    results = [ca.densify(result) for result in body(*arguments)]
    loop = Loop(
        routine,
        tuple(map(int, sizes)),
        tuple(tuple(map(int, table)) for table in tables),
        inputs=len(arguments),
        outputs=tuple(int(result.numel()) for result in results),
        work=work,
    )
    key = hashlib.sha256(repr(loop).encode()).hexdigest()[:12]
    name = f"{routine}_{key}"
    LOOPS[name] = loop
    return ca.Function(name, arguments, results, {"never_inline": True})


def padded(size: int) -> int:
    """Return the length of a column in whole vectors of any processor."""
    return -(-size // MOST_LANES) * MOST_LANES


def product(A: ca.MX, B: ca.MX) -> ca.MX:
    """Return `A @ B`; structural zeros of the sparse one are not multiplied.

    Args:
        A: (m, k).
        B: (k, n).
    """
    (m, k), n = A.shape, B.shape[1]
    A, B = _constant_if(A), _constant_if(B)
    if min(m, k, n) == 0 or min(A.nnz(), B.nnz()) == 0:
        return ca.MX.zeros(m, n)
    if n == 1 and B.is_dense():
        return _times_vector(A, B)
    if not A.is_dense():
        return product(B.T, A.T).T if B.is_dense() else product(ca.densify(A), B)
    chosen = _first_chosen(B) if B.is_constant() else None
    if chosen is not None:
        return A[:, chosen : chosen + n]
    if not B.is_dense():
        tables = (B.sparsity().colind(), B.sparsity().row())
        return _call("loops_product_sparse", (m, n), (A, B), _times, tables)
    if B.is_op(ca.OP_TRANSPOSE):
        turned = (A, B.dep(0))
        return _call("loops_product_turned", (m, k, n), turned, lambda a, b: [a @ b.T])
    return _call("loops_product", (m, k, n), (A, B), _times)


def _first_chosen(B: ca.MX) -> int | None:
    """Return the first of the columns of A that `A @ B` is, where these follow each other."""
    row, column = B.sparsity().row(), list(range(B.shape[1]))
    if B.sparsity().get_col() != column or B.to_DM().nonzeros() != [1.0] * len(column):
        return None
    return row[0] if row == [row[0] + j for j in column] else None


def _constant_if(A: ca.MX) -> ca.MX:
    """Return the transpose of a constant as a constant: it need not be turned at run time."""
    is_turned_constant = A.is_op(ca.OP_TRANSPOSE) and A.dep(0).is_constant()
    return ca.MX(A.dep(0).to_DM().T) if is_turned_constant else A


def _times_vector(A: ca.MX, x: ca.MX) -> ca.MX:
    """Return `A @ x`, column by column, or row by row where A is a transpose."""
    m, k = A.shape
    turned = A.is_op(ca.OP_TRANSPOSE)
    matrix = A.dep(0) if turned else A
    if A.is_constant() and not A.is_dense():
        return _times_constant(A.to_DM(), x)
    tables: tuple[list[int], ...] = ()
    sizes: tuple[int, ...] = (m, k)
    if A.is_dense():
        name = "loops_times_turned" if turned else "loops_times"
    elif turned:
        name = "loops_times_sparse_turned"
        tables = (matrix.sparsity().colind(), matrix.sparsity().row())
    else:
        name, sizes, tables = "loops_times_sparse", (m,), _entries_by_row(matrix.sparsity())
    body = (lambda a, b: [a.T @ b]) if turned else _times
    return _call(name, sizes, (matrix, x), body, tables)


def _times_constant(A: ca.DM, x: ca.MX) -> ca.MX:
    """Return `A @ x` for a constant, sparse A: few operations, many of them with 1."""
    symbol = ca.SX.sym("x", x.shape[0])
    options = {"never_inline": True}
    result: ca.MX = ca.Function("times", [symbol], [ca.densify(A @ symbol)], options)(x)
    return result


def _times(A: ca.MX, B: ca.MX) -> list[ca.MX]:
    return [A @ B]


def _call(
    routine: str,
    sizes: Sequence[int],
    arguments: Sequence[ca.MX],
    body: Body,
    tables: Sequence[Sequence[int]] = (),
) -> ca.MX:
    """Return the one output of a loop."""
    patterns = [argument.sparsity() for argument in arguments]
    result: ca.MX = loop_function(routine, patterns, body, sizes=sizes, tables=tables)(*arguments)
    return result


def gram(E: ca.MX, weight: ca.MX, shift: ca.MX) -> ca.MX:
    """Return the dense `E diag(weight) Eᵀ + diag(shift)` of a dense matrix (n, k)."""
    n, k = E.shape
    arguments = [ca.densify(x) for x in (E, weight, shift)]
    f = loop_function(
        "loops_gram",
        [argument.sparsity() for argument in arguments],
        lambda e, w, d: [(e * ca.repmat(w.T, n, 1)) @ e.T + ca.diag(d)],
        sizes=(n, k),
        work=k,
    )
    result: ca.MX = f(*arguments)
    return result


def row_squares(A: ca.MX) -> ca.MX:
    """Return the squared lengths (m,) of the rows of A."""
    if not A.shape[0]:
        return ca.MX(0, 1)
    return _call("loops_row_squares", A.shape, [ca.densify(A)], lambda a: [ca.sum2(a**2)])


def _solve(A: ca.MX, b: ca.MX) -> ca.MX:
    """Return `A⁻¹ b` for a triangular A, with two columns at least.

    CasADi 3.8 finds no dependence of the solution on a single column, and Jacobians of zero.
    """
    if b.shape[1] > 1:
        return ca.solve(A, b)
    return ca.solve(A, ca.horzcat(b, b))[:, 0]


def solve_tree(L: ca.MX, b: ca.MX, *, transposed: bool) -> ca.MX:
    """Return `L⁻¹ b`, or `L⁻ᵀ b`, for the factor of `tree_cholesky` and a matrix b (n, k)."""
    n, k = b.shape
    if not k:
        return ca.MX(n, 0)
    pattern = L.sparsity()
    name = "loops_solve_tree_transposed" if transposed else "loops_solve_tree"
    f = loop_function(
        name,
        [pattern, ca.Sparsity.dense(k, n)],
        lambda factor, c: [_solve(factor.T if transposed else factor, c.T).T],
        sizes=(n, k),
        tables=_entries_by_row(pattern),
    )
    return f(L, ca.densify(b.T)).T


def _entries_by_row(pattern: ca.Sparsity) -> tuple[list[int], list[int], list[int]]:
    """Return where each row begins, and the columns and places of its nonzeros, by column."""
    start, row = np.array(pattern.colind()), np.array(pattern.row())
    column = np.repeat(np.arange(pattern.size2()), np.diff(start))
    order = np.lexsort((column, row))
    ends = np.searchsorted(row[order], np.arange(pattern.size1() + 1))
    return ends.tolist(), column[order].tolist(), order.tolist()


def solve_rows(R: ca.MX, inv_diag: ca.MX, b: ca.MX, *, transposed: bool) -> ca.MX:
    """Return `R⁻¹ b`, or `R⁻ᵀ b`, for an upper triangular R (m, m) with dropped rows.

    Args:
        R: of a `RowBasis`.
        inv_diag: (m,) reciprocals of its diagonal, zero for dropped rows.
        b: (m, k).
    """
    m, k = b.shape
    if min(m, k) == 0:
        return ca.MX(m, k)

    def body(r: ca.MX, inverse: ca.MX, c: ca.MX) -> list[ca.MX]:
        kept = inverse != 0
        diagonal = ca.if_else(kept, 1 / ca.if_else(kept, inverse, 1), 1)
        whole = ca.triu(r.T, False) * ca.repmat(kept.T, m, 1) + ca.diag(diagonal)
        return [_solve(whole.T if transposed else whole, ca.repmat(kept, 1, k) * c.T).T]

    name = "loops_solve_rows_transposed" if transposed else "loops_solve_rows"
    dense = ca.Sparsity.dense
    f = loop_function(name, [dense(m, m), dense(m, 1), dense(k, m)], body, sizes=(m, k))
    return f(ca.densify(R.T), ca.densify(inv_diag), ca.densify(b.T)).T


def row_factor(A: ca.MX, threshold2: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX]:
    """Return (V, R, kept) as `gram_schmidt.factor` with one pass does."""
    m, n = A.shape
    if not m:
        return ca.MX(n, 0), ca.MX(0, 0), ca.MX(0, 1)
    if m > MOST_ROWS:
        return gram_schmidt.factor_in_loop(ca.densify(A), threshold2)

    def body(a: ca.MX, limit: ca.MX) -> list[ca.MX]:
        V, R, kept = gram_schmidt.factor_in_calls(a, limit)
        return [V.T, R.T, kept]

    f = loop_function(
        "loops_row_factor",
        [ca.Sparsity.dense(m, n), ca.Sparsity.dense(m, 1)],
        body,
        sizes=(m, n),
        tables=_touched(A.sparsity()),
        work=padded(m) * (n + 1),
    )
    V_rows, R_rows, kept = f(ca.densify(A), ca.densify(threshold2))
    return V_rows.T, R_rows.T, kept


def pivoted_factor(
    A: ca.MX, threshold2: ca.MX, columns: int, body: Body
) -> tuple[ca.MX, ca.MX, ca.MX, ca.MX]:
    """Return (Q, R, used, kept) as `householder.factor` does.

    Args:
        A: (m, n), each at most `MOST_ROWS`.
        threshold2: (m,).
        columns: of Q.
        body: from dense A and threshold2 to the same four.
    """
    m, n = A.shape
    f = loop_function(
        "loops_pivoted_factor",
        [ca.Sparsity.dense(m, n), ca.Sparsity.dense(m, 1)],
        body,
        sizes=(m, n, columns),
        work=padded(m) * n + padded(n) * (n + 1),
    )
    Q, R, used, kept = f(ca.densify(A), ca.densify(threshold2))
    return Q, R, used, kept


def _touched(pattern: ca.Sparsity) -> tuple[list[int], list[int]]:
    """Return for each row the first column in which it has an entry, and the one behind the last.

    Entries are its own, and those of rows before it that it shares a column with.
    """
    filled: list[np.ndarray] = []
    for row in np.array(ca.DM(pattern, 1), dtype=bool):
        fill = row.copy()
        for before in filled:
            if np.any(before & fill):
                fill |= before
        filled.append(fill)
    places = [np.flatnonzero(fill) for fill in filled]
    first = [int(place[0]) if place.size else 0 for place in places]
    return first, [int(place[-1]) + 1 if place.size else 0 for place in places]


def inverse_factor(H: ca.MX) -> ca.MX:
    """Return the lower triangular `L⁻¹` (n, n) with `H = Lᵀ L`; the lower half of H is read."""
    n = H.shape[0]

    def body(h: ca.MX) -> list[ca.MX]:
        return [ca.solve(cholesky_in_calls(h), ca.MX.eye(n)).T]

    f = loop_function(
        "loops_inverse_factor",
        [ca.Sparsity.dense(n, n)],
        body,
        sizes=(n,),
        work=padded(n) * (n + 2),
    )
    return f(ca.densify(H)).T


def cholesky_in_loop(M: ca.MX) -> ca.MX:
    """Return lower triangular L with `M = Lᵀ L`; the lower half of M is read."""
    n = M.shape[0]
    loop = _cholesky_step_fun(n).mapaccum("tree_cholesky_loop", n, 1)
    last_first = list(reversed(range(n)))
    _, rows = loop(_symmetric(M), ca.DM.eye(n)[:, last_first], _above(n)[:, last_first])
    return ca.tril(rows[:, last_first].T)


def cholesky_in_calls(M: ca.MX) -> ca.MX:
    """Return what `cholesky_in_loop` does, with less memory and longer code."""
    n = M.shape[0]
    step, S, rows = _cholesky_step_fun(n), _symmetric(M), []
    for i in reversed(range(n)):
        S, row = step(S, ca.DM.eye(n)[:, i], _above(n)[:, i])
        rows.append(row)
    return ca.tril(ca.horzcat(*reversed(rows)).T)


def _cholesky_step_fun(n: int) -> ca.Function:
    """Return (S, place, above) → (S_next, row) for the row of L at `place`."""
    S, place, above = ca.MX.sym("S", n, n), ca.MX.sym("place", n), ca.MX.sym("above", n)
    column = S @ place
    row = column * above / ca.sqrt(ca.dot(place, column))
    return named_function(
        "tree_cholesky_step",
        {"S": S, "place": place, "above": above},
        {"S_next": S - row @ row.T, "row": row},
    )


def _symmetric(M: ca.MX) -> ca.MX:
    return ca.densify(ca.tril(M) + ca.tril(M, False).T)


def _above(n: int) -> ca.DM:
    return ca.densify(ca.DM(ca.Sparsity.upper(n), 1))
