"""Pseudo-inverses of matrices whose rank is not known beforehand.

A row basis gives `Aᵀ = V R`; a second one, of the rows of `R`, gives `R = T Uᵀ` with
triangular `T`. So `A = U Tᵀ Vᵀ` with orthonormal `U`, `V` and invertible `T`, and
`A⁺ = V T⁻ᵀ Uᵀ`. Columns that are not in use are zero in `U` and `V` and unit vectors in `T`.
"""

from dataclasses import dataclass
from typing import Generic

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.linalg import gram_schmidt
from mbcasadi.linalg.basis import RANK_TOL, RowBasis, drop_threshold2, null_basis, row_basis
from mbcasadi.linalg.factor import operations, row_factor_and_null
from mbcasadi.linalg.symbols import Sym, named_function, symbol
from mbcasadi.shapes import require_rows, require_scale, require_shape
from mbcasadi.short_text import summarised


@summarised
@dataclass(frozen=True)
class CompleteFactor(Generic[Sym]):
    """`A = U Tᵀ Vᵀ`, a complete orthogonal factorisation.

    Attributes:
        basis: the row basis of A; its `V` is (n, k).
        U: (m, k) orthonormal basis of range(A), zero columns where `V` has them.
        T: (k, k) triangular and invertible.
    """

    basis: RowBasis[Sym]
    U: Sym
    T: Sym

    @checked
    def pinv_times(self, b: Sym) -> Sym:
        """Return `A⁺ b` for an (m, p) right-hand side: least squares, minimum norm."""
        require_rows("b", b, self.U.shape[0])
        return self.basis.V @ ca.solve(self.T.T, self.U.T @ b)

    @checked
    def pinv_transposed_times(self, b: Sym) -> Sym:
        """Return `A⁺ᵀ b` for an (n, p) right-hand side."""
        require_rows("b", b, self.basis.V.shape[0])
        return self.U @ ca.solve(self.T, self.basis.V.T @ b)


@checked
def complete_factor(
    A: Sym, *, row_scale: Sym | ca.DM | float = 1.0, rank_tol: float = RANK_TOL, pivot: bool = True
) -> CompleteFactor[Sym]:
    """Return `A = U Tᵀ Vᵀ`.

    Without pivoting, `A⁺` is a little less than `P`: dependent rows of very unequal length
    lose accuracy in it, and its derivatives need the kept rows, not only their number, to be
    locally constant (a dropped row stays dependent on rows before it).

    Args:
        A: (m, n) matrix of any rank.
        row_scale, rank_tol, pivot: drop rule of `row_basis`.
    """
    basis = row_basis(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    U, T = _factor_of_coordinates(basis.R, basis.used)
    return CompleteFactor(basis, U, T)


@checked
def complete_factor_scaled(
    A: Sym, column_scale: ca.DM, *, row_scale: Sym | ca.DM | float = 1.0, rank_tol: float = RANK_TOL
) -> CompleteFactor[Sym]:
    """Return `A = U Tᵀ Vᵀ`, its rank decided on `A diag(column_scale)`.

    The drop rule then does not depend on the units of the columns, and the factors are those of A.

    Args:
        A: (m, n) matrix of any rank.
        column_scale: (n,) positive.
        row_scale, rank_tol: drop rule of `row_basis` for the scaled rows.
    """
    require_shape("column_scale", column_scale, (A.shape[1], 1), "(n, 1)")
    if np.ptp(np.array(column_scale)) == 0.0:
        return complete_factor(A, row_scale=row_scale / float(column_scale[0]), rank_tol=rank_tol)
    scaled = row_basis(A @ ca.diag(column_scale), row_scale=row_scale, rank_tol=rank_tol)
    span = ca.diag(1 / column_scale) @ scaled.V
    basis = row_basis(span.T, row_scale=0.0, rank_tol=0.0, pivot=False)
    R = ca.diag(basis.used) @ (basis.V.T @ A.T)
    U, T = _factor_of_coordinates(R, basis.used)
    return CompleteFactor(RowBasis(basis.V, R, basis.used, scaled.kept, scaled.rank), U, T)


@checked
def complete_factor_and_null_basis(
    A: Sym, *, row_scale: Sym | ca.DM | float = 1.0, rank_tol: float = RANK_TOL, pivot: bool = True
) -> tuple[CompleteFactor[Sym], Sym]:
    """Return `complete_factor(A)` and `Z` of `null_basis`, with one decision on the rank.

    With pivoting both come from one factorisation; without, `Z` is that of the basis `Vᵀ`.

    Args:
        A: (m, n) matrix of any rank.
        row_scale, rank_tol, pivot: drop rule of `row_basis`.
    """
    if not pivot:
        factor = complete_factor(A, row_scale=row_scale, rank_tol=rank_tol, pivot=False)
        return factor, null_basis(factor.basis.V.T)
    threshold2 = drop_threshold2(A, row_scale, None, rank_tol)
    V, R, used, kept, Z = row_factor_and_null(A, threshold2)
    return CompleteFactor(
        RowBasis(V, R, used, kept, ca.sum1(kept)), *_factor_of_coordinates(R, used)
    ), Z


@checked
def pinv(
    A: Sym, *, row_scale: Sym | ca.DM | float = 1.0, rank_tol: float = RANK_TOL, pivot: bool = True
) -> Sym:
    """Return the (n, m) Moore-Penrose pseudo-inverse `A⁺`.

    It depends on the units of rows and columns: `D (R A D)⁺ R` is that of sizes D and 1/R.

    Args:
        A: (m, n) matrix of any rank.
        row_scale, rank_tol, pivot: drop rule of `row_basis`.
    """
    factor = complete_factor(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    return factor.basis.V @ ca.solve(factor.T.T, factor.U.T)


@checked
def pinv_fun(
    pattern: ca.Sparsity,
    *,
    row_scale: ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return `pinv` as a Function (A) → (A_pinv).

    Args:
        pattern: (m, n) sparsity of A.
        row_scale, rank_tol, pivot: drop rule of `row_basis`.
    """
    A = symbol("A", pattern, operations(pattern, pivot))
    out = pinv(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    return named_function("pinv", {"A": A}, {"A_pinv": out})


@checked
def damped_pinv(A: Sym, damping: Sym | float) -> Sym:
    """Return `Aᵀ (A Aᵀ + d² I)⁻¹`, smooth in A whatever its rank.

    The bias: a singular value σ of A is inverted as `σ / (σ² + d²)` instead of `1/σ`, a
    relative error of `d² / (σ² + d²)`; the norm never exceeds `1 / (2 d)`. It is computed
    from an orthogonal factorisation of `[A, d I]`, so `d` is not squared into rounding.

    Args:
        A: (m, n) matrix.
        damping: d > 0, in the unit of A.
    """
    m, n = A.shape
    require_scale("damping", damping, 1)
    wide = ca.horzcat(A, damping * type(A).eye(m))
    basis = row_basis(wide, row_scale=0.0, rank_tol=0.0, pivot=False)
    return basis.V[:n, :] @ ca.solve(basis.R.T, type(A).eye(m)) if m else A.T


@checked
def damped_pinv_fun(pattern: ca.Sparsity) -> ca.Function:
    """Return `damped_pinv` as a Function (A, damping) → (A_pinv)."""
    m = pattern.size1()
    count = gram_schmidt.operations(ca.horzcat(pattern, ca.Sparsity.diag(m)))
    A = symbol("A", pattern, count)
    damping = symbol("damping", ca.Sparsity.dense(1, 1), count)
    return named_function(
        "damped_pinv", {"A": A, "damping": damping}, {"A_pinv": damped_pinv(A, damping)}
    )


def _factor_of_coordinates(R: Sym, used: Sym) -> tuple[Sym, Sym]:
    """Return `(U, T)` with `R = T Uᵀ`, `T` upper triangular, unit where a row is not used.

    From the last row up: a square triangular R then gives U = I up to signs, without fill.
    """
    last_first = list(reversed(range(R.shape[0])))
    basis = row_basis(R[last_first, :], row_scale=0.0, rank_tol=0.0, pivot=False)
    T = basis.R.T[last_first, last_first] + ca.diag(1 - used)
    return basis.V[:, last_first], ca.triu(T)
