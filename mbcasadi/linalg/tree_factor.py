"""Factors of a joint-space inertia that keep the zeros of a kinematic tree.

`M = Lᵀ L` with `L` lower triangular, computed from the last row up: joints are numbered after
their parents, so elimination from the leaves creates no entry that `M` does not have
(R. Featherstone, Rigid Body Dynamics Algorithms, 2008, section 6.3). An ordinary Cholesky
factor fills in.
"""

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.linalg import loops
from mbcasadi.linalg.arithmetic import Scalar, entries_of, matrix_of, minus, times
from mbcasadi.linalg.symbols import Sym, named_function, symbol
from mbcasadi.shapes import require_rows, require_square, require_whole


@checked
def tree_cholesky(M: Sym) -> Sym:
    """Return lower triangular `L` with `M = Lᵀ L`.

    Args:
        M: (n, n) symmetric positive definite; only its lower triangle is read. Structural
            zeros of SX stay zeros, and none is filled where M is the inertia of a tree.
    """
    require_square("M", M)
    if not isinstance(M, ca.SX):
        return tree_cholesky_fun(M.sparsity())(M)
    L: dict[tuple[int, int], Scalar] = {**entries_of(ca.tril(ca.SX(M)))}
    for k in reversed(range(M.shape[0])):
        ancestors = [i for i in range(k) if (k, i) in L]
        L[k, k] = ca.sqrt(L.get((k, k), 0.0))
        inverse = reciprocal(ca.SX(L[k, k]))
        for i in ancestors:
            L[k, i] = times(L[k, i], inverse)
        for i in ancestors:
            for j in (j for j in ancestors if j <= i):
                L[i, j] = minus(L.get((i, j), 0.0), times(L[k, i], L[k, j]))
    return matrix_of(M.shape, L)


@checked
def tree_cholesky_fun(pattern: ca.Sparsity) -> ca.Function:
    """Return `tree_cholesky` as a Function (M) → (L) for matrices with this pattern.

    Small or sparse matrices are unrolled, large ones become a loop.
    """
    require_square("M", pattern)
    M = symbol("M", pattern, factor_operations(pattern))
    L = tree_cholesky(M) if isinstance(M, ca.SX) else loops.cholesky_in_loop(M)
    return named_function("tree_cholesky", {"M": M}, {"L": L})


@checked
def tree_solve_transposed(L: Sym, b: Sym) -> Sym:
    """Return `L⁻ᵀ b` for `L` of `tree_cholesky`, from the leaves to the roots.

    A sparse `b` (SX) stays sparse: an entry spreads to the ancestors of its joint only.
    """
    _require_equations(L, b)
    if isinstance(L, ca.MX):
        return loops.solve_tree(L, b, transposed=True)
    if isinstance(L, ca.DM):
        return ca.solve(L.T, b)
    rows: list[ca.SX] = ca.vertsplit(ca.SX(b))
    x: list[Scalar] = [*rows]
    factor = entries_of(L)
    for k in reversed(range(L.shape[0])):
        x[k] = times(x[k], reciprocal(factor[k, k]))
        for i in (i for i in range(k) if (k, i) in factor):
            x[i] = minus(x[i], times(factor[k, i], x[k]))
    return ca.vertcat(b[:0, :], *x)


@checked
def tree_solve_lower(L: Sym, b: Sym) -> Sym:
    """Return `L⁻¹ b` for `L` of `tree_cholesky`, from the roots to the leaves."""
    _require_equations(L, b)
    if isinstance(L, ca.MX):
        return loops.solve_tree(L, b, transposed=False)
    if isinstance(L, ca.DM):
        return ca.solve(L, b)
    rows: list[ca.SX] = ca.vertsplit(ca.SX(b))
    x: list[Scalar] = [*rows]
    factor = entries_of(L)
    for k in range(L.shape[0]):
        for i in (i for i in range(k) if (k, i) in factor):
            x[k] = minus(x[k], times(factor[k, i], x[i]))
        x[k] = times(x[k], reciprocal(factor[k, k]))
    return ca.vertcat(b[:0, :], *x)


@checked
def tree_solve(L: Sym, b: Sym) -> Sym:
    """Return `M⁻¹ b = L⁻¹ L⁻ᵀ b` for `L` of `tree_cholesky(M)`."""
    return tree_solve_lower(L, tree_solve_transposed(L, b))


@checked
def tree_solve_fun(pattern: ca.Sparsity, columns: int = 1) -> ca.Function:
    """Return `M⁻¹ b` as a Function (M, b) → (x) for an M with this pattern."""
    require_square("M", pattern)
    require_whole(0, columns=columns)
    n = pattern.size1()
    count = factor_operations(pattern) + 4 * columns * ca.tril(pattern).nnz()
    M, b = symbol("M", pattern, count), symbol("b", ca.Sparsity.dense(n, columns), count)
    return named_function("tree_solve", {"M": M, "b": b}, {"x": tree_solve(tree_cholesky(M), b)})


def _require_equations(L: Sym, b: Sym) -> None:
    require_square("L", L)
    require_rows("b", b, L.shape[0])


def factor_operations(pattern: ca.Sparsity) -> int:
    """Return about how many operations `tree_cholesky` takes on this pattern."""
    entries = np.bincount(ca.tril(pattern).row(), minlength=pattern.size1())
    return int(np.sum(entries**2))


def reciprocal(x: ca.SX) -> ca.SX:
    """Return `x (1/x)²`: one division however often it is used.

    CasADi turns every product with `1/x` back into a division, and those are slow.
    """
    return ca.SX.binary(ca.OP_MUL, x, ca.SX.unary(ca.OP_SQ, ca.SX.unary(ca.OP_INV, x)))
