"""Selects how rows are factored: pivoted or in order, unrolled or as a loop."""

import functools
from typing import NamedTuple

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.linalg import gram_schmidt, householder, loops, symbols
from mbcasadi.linalg.symbols import Sym, named_function, symbol


class _Method(NamedTuple):
    """What identifies a factorisation: the pattern of A, pivoting, and the columns of Q."""

    pattern: tuple[int, ...]
    pivot: bool
    columns: int


def row_factor(A: Sym, threshold2: Sym, pivot: bool) -> tuple[Sym, Sym, Sym, Sym]:
    """Return (V, R, used, kept) as in `RowBasis`."""
    Q, R, used, kept = _factor(A, threshold2, pivot, min(A.shape))
    if not pivot:
        return Q, R, used, kept
    return Q * ca.repmat(used.T, A.shape[1], 1), R, used, kept


def null_columns(A: Sym, threshold2: Sym) -> Sym:
    """Return the (n, n) orthogonal matrix with its columns in range(Aᵀ) set to zero."""
    Q, _, used, _ = _factor(A, threshold2, True, A.shape[1])
    return _null_part(Q, used)


def orthogonal_factor(A: Sym, threshold2: Sym) -> tuple[Sym, Sym]:
    """Return an orthogonal Q (n, n) and R (k, m) with `Aᵀ = Q[:, :k] R`, k = min(m, n), by pivots.

    Args:
        A: (m, n).
        threshold2: (m,) squares of the lengths below which the remainder of a row is zero.
    """
    Q, R, _, _ = _factor(A, threshold2, True, A.shape[1])
    return Q, R


def row_factor_and_null(A: Sym, threshold2: Sym) -> tuple[Sym, Sym, Sym, Sym, Sym]:
    """Return (V, R, used, kept) as in `RowBasis` with pivots, and `null_columns`, at once."""
    n, k = A.shape[1], min(A.shape)
    Q, R, used, kept = _factor(A, threshold2, True, n)
    return Q[:, :k] * ca.repmat(used.T, n, 1), R, used, kept, _null_part(Q, used)


def _null_part(Q: Sym, used: Sym) -> Sym:
    n, k = Q.shape[1], used.shape[0]
    in_null = ca.vertcat(1 - used, ca.DM.ones(n - k))
    return Q * ca.repmat(in_null.T, n, 1)


@checked
def operations(pattern: ca.Sparsity, pivot: bool) -> int:
    """Return about how many operations `row_basis` takes on a matrix with this pattern."""
    if pivot:
        return householder.operations(pattern.size1(), pattern.size2())
    return gram_schmidt.operations(pattern)


def _factor(A: Sym, threshold2: Sym, pivot: bool, columns: int) -> tuple[Sym, Sym, Sym, Sym]:
    if isinstance(A, ca.SX):
        return _factor_unrolled(A, threshold2, pivot, columns)
    if isinstance(A, ca.MX) and pivot and 0 < max(A.shape) <= loops.MOST_ROWS:
        dense = _Method(tuple(ca.Sparsity.dense(*A.shape).compress()), pivot, columns)
        body = _factor_fun(dense, symbols.UNROLL_LIMIT)
        return loops.pivoted_factor(A, ca.MX(threshold2), columns, lambda *given: body(*given))
    method = _Method(tuple(A.sparsity().compress()), pivot, columns)
    Q, R, used, kept = _factor_fun(method, symbols.UNROLL_LIMIT)(A, threshold2)
    return Q, R, used, kept


def _factor_unrolled(
    A: ca.SX, threshold2: ca.SX, pivot: bool, columns: int
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    if pivot:
        return householder.factor(A, threshold2, columns)
    V, R, kept = gram_schmidt.factor(A, threshold2)
    return V, R, kept, kept


def _factor_in_loop(
    A: ca.MX, threshold2: ca.MX, pivot: bool, columns: int
) -> tuple[ca.MX, ca.MX, ca.MX, ca.MX]:
    if pivot:
        return householder.factor_in_loop(A, threshold2, columns)
    V, R, kept = gram_schmidt.factor_in_loop(A, threshold2)
    return V, R, kept, kept


@functools.lru_cache(maxsize=64)
def _factor_fun(method: _Method, limit: int) -> ca.Function:
    """Return (A, threshold2) → (Q, R, used, kept).

    The cache makes generated C hold it once however often a pattern is factored.
    """
    pattern = ca.Sparsity.compressed(list(method.pattern))
    count = operations(pattern, method.pivot)
    A = symbol("A", pattern, count, limit)
    threshold2 = symbol("threshold2", ca.Sparsity.dense(pattern.size1(), 1), count, limit)
    build = _factor_unrolled if isinstance(A, ca.SX) else _factor_in_loop
    Q, R, used, kept = build(A, threshold2, method.pivot, method.columns)
    outputs = {"Q": Q, "R": R, "used": used, "kept": kept}
    return named_function("row_factor", {"A": A, "threshold2": threshold2}, outputs)
