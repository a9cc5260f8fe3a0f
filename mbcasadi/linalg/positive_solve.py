"""Linear equations whose matrix is positive definite without being symmetric.

`xᵀ A x > 0` makes every pivot positive, so elimination needs no row exchanges: a fixed
sequence of operations. Rows and columns are first scaled to a unit diagonal, and one step of
iterative refinement removes what growth of the factors may have cost.
"""

import casadi as ca

from mbcasadi.linalg.symbols import UNROLL_LIMIT, Sym, named


def positive_solve(A: Sym, b: Sym) -> Sym:
    """Return `A⁻¹ b` for A (n, n) with positive definite symmetric part.

    Args:
        A: (n, n) matrix, `xᵀ A x > 0`; it need not be symmetric.
        b: (n, p) right-hand side.
    """
    n = A.shape[0]
    scale = 1 / ca.sqrt(ca.diag(A))
    unit_diagonal = ca.repmat(scale, 1, n) * A * ca.repmat(scale.T, n, 1)
    rhs = ca.repmat(scale, 1, b.shape[1]) * b
    return ca.repmat(scale, 1, b.shape[1]) * _solve(unit_diagonal, rhs)


def positive_solve_fun(pattern: ca.Sparsity, rhs_pattern: ca.Sparsity) -> ca.Function:
    """Return `positive_solve` as a Function (A, b) → (x), unrolled."""
    A, b = ca.SX.sym("A", pattern), ca.SX.sym("b", rhs_pattern)
    return named("positive_solve", {"A": A, "b": b}, {"x": positive_solve(A, b)})


def _solve(A: Sym, b: Sym) -> Sym:
    if not isinstance(A, ca.SX):
        if A.shape[0] ** 3 > UNROLL_LIMIT:
            return ca.solve(A, b, "qr")
        A_s, b_s = ca.SX.sym("A", A.sparsity()), ca.SX.sym("b", b.sparsity())
        inner = named("eliminate", {"A": A_s, "b": b_s}, {"x": _solve(A_s, b_s)})
        return inner.call([A, b])[0]
    U, L = _eliminate(A)
    x = _substitute(U, L, b)
    return x + _substitute(U, L, b - A @ x)


def _eliminate(A: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return `(U, L)`, `A = L U` with unit lower `L`; structural zeros are skipped."""
    n = A.shape[0]
    U, L = ca.SX(A), ca.SX.eye(n)
    for k in range(n - 1):
        factors = U[k + 1 :, k] / U[k, k]
        L[k + 1 :, k] = factors
        U[k + 1 :, k + 1 :] = U[k + 1 :, k + 1 :] - factors @ U[k, k + 1 :]
    return ca.triu(U), L


def _substitute(U: ca.SX, L: ca.SX, b: ca.SX) -> ca.SX:
    return ca.solve(U, ca.solve(L, b))
