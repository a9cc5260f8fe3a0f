"""Triangular solves with the factor of a row basis, whose dropped rows are zero."""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.linalg import loops
from mbcasadi.linalg.basis import RowBasis
from mbcasadi.linalg.symbols import Sym
from mbcasadi.shapes import require_rows, require_shape, require_square


@checked
def inverse_diagonal(basis: RowBasis[Sym]) -> Sym:
    """Return (m,) reciprocals of the diagonal of R, zero for dropped rows."""
    if not basis.kept.numel():
        return basis.kept
    return basis.kept / ca.if_else(basis.kept, ca.diag(basis.R.T), 1)


@checked
def solve_upper(R: Sym, inv_diag: Sym, b: Sym) -> Sym:
    """Return `R⁻¹ b` by back substitution; zero rows where `inv_diag` is zero."""
    _require_equations(R, inv_diag, b)
    if isinstance(b, ca.MX) or isinstance(R, ca.MX):
        return loops.solve_rows(R, inv_diag, b, transposed=False)
    x = type(b)(b)
    for i in reversed(range(R.shape[0])):
        x[i, :] = x[i, :] * inv_diag[i]
        for j in (j for j in range(i) if R.sparsity().has_nz(j, i)):
            x[j, :] = x[j, :] - R[j, i] * x[i, :]
    return x


@checked
def solve_upper_transposed(R: Sym, inv_diag: Sym, b: Sym) -> Sym:
    """Return `R⁻ᵀ b` by forward substitution; zero rows where `inv_diag` is zero."""
    _require_equations(R, inv_diag, b)
    if isinstance(b, ca.MX) or isinstance(R, ca.MX):
        return loops.solve_rows(R, inv_diag, b, transposed=True)
    x = type(b)(b)
    for i in range(R.shape[0]):
        for j in (j for j in range(i) if R.sparsity().has_nz(j, i)):
            x[i, :] = x[i, :] - R[j, i] * x[j, :]
        x[i, :] = x[i, :] * inv_diag[i]
    return x


def _require_equations(R: Sym, inv_diag: Sym, b: Sym) -> None:
    require_square("R", R)
    require_shape("inv_diag", inv_diag, (R.shape[0], 1))
    require_rows("b", b, R.shape[0])


@checked
def solve_kept(basis: RowBasis[Sym], b: Sym) -> Sym:
    """Return the shortest x (n,) with `A_i x = b_i` for each row that is kept.

    Args:
        basis: of A, factored without pivoting.
        b: (m,).
    """
    return basis.V @ solve_upper_transposed(basis.R, inverse_diagonal(basis), ca.densify(b))
