"""Orthonormal basis of range(Aᵀ), rank, projector and null basis, rank revealed as it runs.

`ca.pinv` assumes full rank and returns NaN for repeated rows; a singular value decomposition
has no generated C. Here every matrix gets the same operations whatever its rank: a dropped
row leaves a zero column in the basis. Derivatives are right wherever the rank is locally
constant.

Drop rule: row i is dropped when what the rows before it leave of it is not longer than
`rank_tol · max(|A_i|, row_scale_i)`. `row_scale` is absolute, in the row's own unit: a purely
relative rule would keep a single row that vanishes, with a direction made of rounding errors.
"""

from dataclasses import dataclass
from typing import Generic

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.description.tolerance import tolerance
from mbcasadi.linalg import gram_schmidt, loops
from mbcasadi.linalg.factor import null_columns, operations, row_factor
from mbcasadi.linalg.symbols import Sym, named_function, symbol
from mbcasadi.shapes import require_scale
from mbcasadi.short_text import summarised

RANK_TOL = 1e-10
"""Relative length of a remainder that counts as zero, the default of every drop rule. Doubles
carry 2e-16; the entries of A may have lost six digits before."""

ONE_PASS_TOL = 1e-4
"""With this relative length kept at least, one pass of Gram-Schmidt is orthogonal to 1e-11."""


@summarised
@dataclass(frozen=True)
class RowBasis(Generic[Sym]):
    """Orthonormal basis of range(Aᵀ): `Aᵀ = V R`, dropped remainders apart.

    Attributes:
        V: (n, k) orthonormal columns, exact zeros in columns that are not in use. With
            pivoting `k = min(m, n)` and the zero columns are last; without, `k = m` and
            column i belongs to row i.
        R: (k, m) coordinates of the rows of A; zero rows where V has zero columns. Upper
            triangular without pivoting, triangular up to the order of its columns with it.
        used: (k, 1) one where the column of V is in use, else zero.
        kept: (m, 1) one where the row of A is kept, else zero.
        rank: number of kept rows.
    """

    V: Sym
    R: Sym
    used: Sym
    kept: Sym
    rank: Sym


@checked
def row_basis(
    A: Sym,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    row_norms: Sym | ca.DM | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> RowBasis[Sym]:
    """Return an orthonormal basis of range(Aᵀ) and what it says about the rows.

    Args:
        A: (m, n) matrix; without pivoting, structural zeros of SX are used.
        row_scale: absolute scale of each row, (m, 1) or a scalar.
        row_norms: (m, 1) lengths that replace `|A_i|` in the drop rule, where the rows of A
            come from another matrix (a mass-weighted Jacobian, say); default: their own.
        rank_tol: relative length of a remainder that counts as zero.
        pivot: take the row with the largest remainder next (Householder reflections), else
            the rows in their order (Gram-Schmidt): cheaper where A is sparse. For SX with a
            `rank_tol` of `ONE_PASS_TOL` or more one pass serves, else two.
    """
    threshold2 = drop_threshold2(A, row_scale, row_norms, rank_tol)
    if not isinstance(A, ca.DM) and not pivot and rank_tol >= ONE_PASS_TOL:
        V, R, kept = (
            loops.row_factor(A, threshold2)
            if isinstance(A, ca.MX)
            else gram_schmidt.factor(A, threshold2, passes=1)
        )
        return RowBasis(V, R, kept, kept, ca.sum1(kept))
    V, R, used, kept = row_factor(A, threshold2, pivot)
    return RowBasis(V, R, used, kept, ca.sum1(kept))


@checked
def row_basis_fun(
    pattern: ca.Sparsity,
    *,
    row_scale: ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return `row_basis` as a Function (A) → (V, R, kept, rank).

    Args:
        pattern: (m, n) sparsity of A.
        row_scale, rank_tol, pivot: drop rule of `row_basis`.
    """
    A = symbol("A", pattern, operations(pattern, pivot))
    basis = row_basis(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    outputs = {"V": basis.V, "R": basis.R, "kept": basis.kept, "rank": basis.rank}
    return named_function("row_basis", {"A": A}, outputs)


@checked
def projector(
    A: Sym, *, row_scale: Sym | ca.DM | float = 1.0, rank_tol: float = RANK_TOL, pivot: bool = True
) -> Sym:
    """Return `P = I - A⁺ A`, the (n, n) orthogonal projector on null(A)  [A05, eq. 15].

    It is computed as `I - V Vᵀ`. It depends on the units of the columns of A; that of a metric is
    `formulation.metric_projector`.

    Args:
        A: (m, n) matrix of any rank.
        row_scale, rank_tol, pivot: drop rule of `row_basis`.
    """
    return complement(row_basis(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot).V)


@checked
def projector_fun(
    pattern: ca.Sparsity,
    *,
    row_scale: ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return `projector` as a Function (A) → (P).

    Args:
        pattern: (m, n) sparsity of A.
        row_scale, rank_tol, pivot: drop rule of `row_basis`.
    """
    A = symbol("A", pattern, operations(pattern, pivot))
    P = projector(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    return named_function("projector", {"A": A}, {"P": P})


@checked
def rank(
    A: Sym, *, row_scale: Sym | ca.DM | float = 1.0, rank_tol: float = RANK_TOL, pivot: bool = True
) -> Sym:
    """Return the number of independent rows of A.

    Args:
        A: (m, n) matrix.
        row_scale, rank_tol, pivot: drop rule of `row_basis`.
    """
    return row_basis(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot).rank


@checked
def rank_fun(
    pattern: ca.Sparsity,
    *,
    row_scale: ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return `rank` as a Function (A) → (rank).

    Args:
        pattern: (m, n) sparsity of A.
        row_scale, rank_tol, pivot: drop rule of `row_basis`.
    """
    A = symbol("A", pattern, operations(pattern, pivot))
    out = rank(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    return named_function("rank", {"A": A}, {"rank": out})


@checked
def null_basis(A: Sym, *, row_scale: Sym | ca.DM | float = 1.0, rank_tol: float = RANK_TOL) -> Sym:
    """Return `Z` (n, n) with `A Z = 0`: orthonormal columns after `rank` zero columns.

    The rank depends on the data, so the number of basis vectors does: they are the last
    `n - rank` columns. `Z Zᵀ` is the projector. `Z` itself may jump where the order of the
    pivots changes; where a smooth basis is needed, use the projector.
    """
    threshold2 = drop_threshold2(A, row_scale, None, rank_tol)
    return null_columns(A, threshold2)


@checked
def null_basis_fun(
    pattern: ca.Sparsity, *, row_scale: ca.DM | float = 1.0, rank_tol: float = RANK_TOL
) -> ca.Function:
    """Return `null_basis` as a Function (A) → (Z)."""
    A = symbol("A", pattern, operations(pattern, True))
    Z = null_basis(A, row_scale=row_scale, rank_tol=rank_tol)
    return named_function("null_basis", {"A": A}, {"Z": Z})


@checked
def complement(V: Sym) -> Sym:
    """Return `I - V Vᵀ` for (n, k) columns that are orthonormal or zero."""
    n = V.shape[0]
    if not isinstance(V, ca.SX):
        return ca.densify(type(V).eye(n) - V @ V.T)
    upper = ca.triu(V @ V.T)  # the other half is the same numbers
    return ca.densify(ca.SX.eye(n) - upper - ca.triu(upper, False).T)


def drop_threshold2(
    A: Sym, row_scale: Sym | ca.DM | float, row_norms: Sym | ca.DM | None, rank_tol: float
) -> Sym:
    """Return the (m, 1) squared lengths at or below which a remainder counts as zero.

    Args:
        A: (m, n) matrix.
        row_scale, row_norms, rank_tol: as in `row_basis`.
    """
    require_scale("row_scale", row_scale, A.shape[0])
    if row_norms is not None:
        require_scale("row_norms", row_norms, A.shape[0])
    if row_norms is not None:
        size2 = row_norms**2
    else:
        size2 = loops.row_squares(A) if isinstance(A, ca.MX) else ca.densify(ca.sum2(A**2))
    return tolerance(rank_tol) ** 2 * ca.fmax(size2, row_scale**2)
