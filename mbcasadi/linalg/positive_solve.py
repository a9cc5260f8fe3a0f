"""Linear equations whose matrix is positive definite without being symmetric.

`xᵀ A x > 0` makes every pivot positive, so elimination needs no row exchanges: a fixed
sequence of operations. Rows and columns are first scaled to a unit diagonal, and one step of
iterative refinement removes what growth of the factors may have cost.
"""

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.linalg.symbols import Sym, named_function, symbol
from mbcasadi.shapes import require_rows, require_square


@checked
def positive_solve(A: Sym, b: Sym) -> Sym:
    """Return `A⁻¹ b` for A (n, n) with positive definite symmetric part.

    Args:
        A: (n, n) matrix, `xᵀ A x > 0`; it need not be symmetric.
        b: (n, p) right-hand side.
    """
    require_square("A", A)
    require_rows("b", b, A.shape[0])
    n = A.shape[0]
    scale = 1 / ca.sqrt(ca.diag(A))
    unit_diagonal = ca.repmat(scale, 1, n) * A * ca.repmat(scale.T, n, 1)
    rhs = ca.repmat(scale, 1, b.shape[1]) * b
    return ca.repmat(scale, 1, b.shape[1]) * _solve(unit_diagonal, rhs)


@checked
def positive_solve_fun(pattern: ca.Sparsity, rhs_pattern: ca.Sparsity) -> ca.Function:
    """Return `positive_solve` as a Function (A, b) → (x), unrolled."""
    A, b = ca.SX.sym("A", pattern), ca.SX.sym("b", rhs_pattern)
    return named_function("positive_solve", {"A": A, "b": b}, {"x": positive_solve(A, b)})


def _solve(A: Sym, b: Sym) -> Sym:
    U, L = _factors(A)
    x = _substitute(U, L, b)
    return x + _substitute(U, L, b - A @ x)


def _substitute(U: Sym, L: Sym, b: Sym) -> Sym:
    return ca.solve(U, ca.solve(L, b))


def _factors(A: Sym) -> tuple[Sym, Sym]:
    """Return triangular `(U, L)` with `A = L U`."""
    if isinstance(A, ca.SX):
        return _eliminate(A)
    n = A.shape[0]
    A_sym = symbol("A", A.sparsity(), n**3)
    U, L = _eliminate(A_sym) if isinstance(A_sym, ca.SX) else _eliminate_in_loop(A_sym)
    U_A, L_A = named_function("eliminate", {"A": A_sym}, {"U": U, "L": L}).call([A])
    return U_A, L_A


def _eliminate(A: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return `(U, L)` with unit diagonal of `L`; structural zeros are skipped."""
    n = A.shape[0]
    U, L = ca.SX(A), ca.SX.eye(n)
    for k in range(n - 1):
        factors = U[k + 1 :, k] / U[k, k]
        L[k + 1 :, k] = factors
        U[k + 1 :, k + 1 :] = U[k + 1 :, k + 1 :] - factors @ U[k, k + 1 :]
    return ca.triu(U), L


def _eliminate_in_loop(A: ca.MX) -> tuple[ca.MX, ca.MX]:
    """Return `(U, L)` as `_eliminate` does, with one column in a loop."""
    n = A.shape[0]
    S, place, behind = ca.MX.sym("S", n, n), ca.MX.sym("place", n), ca.MX.sym("behind", n)
    row = (S.T @ place) * behind
    column = (S @ place) * behind / ca.dot(place, row)
    step = named_function(
        "eliminate_step",
        {"S": S, "place": place, "behind": behind},
        {"S_next": S - column @ row.T, "row": row, "column": column},
    )
    loop = step.mapaccum("eliminate_loop", n, 1)
    _, rows, columns = loop(ca.densify(A), ca.DM.eye(n), ca.DM(np.tri(n)))
    return ca.triu(rows.T), ca.tril(columns)
