"""Symmetric square root of a positive definite matrix, in a fixed number of steps.

`M = Lᵀ L`, and the polar decomposition `L = W H` has `H = M^{1/2}`. Its orthogonal factor
`W` comes from the dynamically weighted Halley iteration of Y. Nakatsukasa, Z. Bai and
F. Gygi (SIAM J. Matrix Anal. Appl. 31, 2010): six steps for any condition a double can hold,
each of them smooth, so that derivatives hold for repeated eigenvalues too.
"""

from typing import Generic, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.linalg.basis import row_basis
from mbcasadi.linalg.factor import operations
from mbcasadi.linalg.symbols import Sym, named_function, symbol
from mbcasadi.linalg.tree_factor import tree_cholesky, tree_solve_lower
from mbcasadi.shapes import require_square, require_whole
from mbcasadi.short_text import summarised

SMALLEST_SINGULAR_VALUE = 1e-8
"""Lower bound of the singular values of `L / |L|`: the condition of M may reach 1e16."""

STEPS = 6


@summarised
class MatrixRoot(NamedTuple, Generic[Sym]):
    """`root @ root = M` and `inverse = root⁻¹`, both symmetric positive definite, (n, n)."""

    root: Sym
    inverse: Sym


@checked
def matrix_root(M: Sym) -> MatrixRoot[Sym]:
    """Return `M^{1/2}` and `M^{-1/2}`.

    Args:
        M: (n, n) symmetric positive definite; only its lower triangle is read.
    """
    if not isinstance(M, ca.SX):
        out = matrix_root_fun(M.sparsity()).call([M])
        return MatrixRoot(out[0], out[1])
    return _root(M)


@checked
def matrix_root_fun(pattern: ca.Sparsity) -> ca.Function:
    """Return `matrix_root` as a Function (M) → (root, inverse); above the limit, a loop."""
    require_square("M", pattern)
    M = symbol("M", pattern, root_operations(pattern.size1()))
    out = _root(M)
    return named_function("matrix_root", {"M": M}, out._asdict())


@checked
def root_operations(n: int) -> int:
    """Return about how many operations `matrix_root` takes on an (n, n) matrix."""
    require_whole(0, n=n)
    wide = ca.horzcat(ca.Sparsity.dense(n, n), ca.Sparsity.diag(n))
    return STEPS * (operations(wide, False) + 2 * n**3)


def _root(M: Sym) -> MatrixRoot[Sym]:
    L = tree_cholesky(M)
    X = ca.densify(L / ca.sqrt(ca.sumsqr(L)))
    halley = _halley_fun(X.shape[0], ca.SX if isinstance(M, ca.SX) else ca.MX)
    for weights in _weights():
        X = halley(X, ca.DM(weights))
    root, inverse = X.T @ L, tree_solve_lower(L, X)
    return MatrixRoot((root + root.T) / 2, (inverse + inverse.T) / 2)


def _halley_fun(n: int, kind: type[Sym]) -> ca.Function:
    """Return one step, (X, (a, b, c)) → (X (a + b XᵀX) (I + c XᵀX)⁻¹), without the inverse.

    With orthonormal columns `[Q1; Q2]` of `[√c X; I]` it is
    `b/c X + (a - b/c)/√c Q1 Q2ᵀ`.
    """
    X, weights = kind.sym("X", n, n), kind.sym("weights", 3)
    a, b, c = weights[0], weights[1], weights[2]
    columns = ca.horzcat(ca.sqrt(c) * X.T, kind.eye(n))
    V = row_basis(columns, row_scale=0.0, rank_tol=0.0, pivot=False).V
    X_next = b / c * X + (a - b / c) / ca.sqrt(c) * (V[:n, :] @ V[n:, :].T)
    return named_function("halley_step", {"X": X, "weights": weights}, {"X_next": X_next})


def _weights() -> list[tuple[float, float, float]]:
    """Return the weights (a, b, c) of each step: optimal for singular values in [l, 1]."""
    weights = []
    low = SMALLEST_SINGULAR_VALUE
    for _ in range(STEPS):
        d = np.cbrt(4 * (1 - low**2) / low**4)
        tail = 8 - 4 * d + 8 * (2 - low**2) / (low**2 * np.sqrt(1 + d))
        a = np.sqrt(1 + d) + np.sqrt(tail) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        weights.append((float(a), float(b), float(c)))
        low = min(low * (a + b * low**2) / (1 + c * low**2), 1.0)
    return weights
