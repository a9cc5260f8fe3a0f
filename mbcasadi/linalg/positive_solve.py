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
    if not isinstance(A, ca.SX):
        if n**3 > UNROLL_LIMIT:
            return ca.solve(A, b, "qr")
        dense = ca.Sparsity.dense(n, b.shape[1])
        return positive_solve_fun(A.sparsity(), dense).call([A, b])[0]
    scale = 1 / ca.sqrt(ca.diag(A))
    scaled, rhs = scale * A * ca.repmat(scale.T, n, 1), scale * b
    upper, lower = _eliminate(scaled)
    x = _substitute(upper, lower, rhs)
    x = x + _substitute(upper, lower, rhs - scaled @ x)
    return scale * x


def positive_solve_fun(pattern: ca.Sparsity, rhs_pattern: ca.Sparsity) -> ca.Function:
    """Return `positive_solve` as a Function (A, b) → (x), unrolled."""
    A, b = ca.SX.sym("A", pattern), ca.SX.sym("b", rhs_pattern)
    return named("positive_solve", {"A": A, "b": b}, {"x": positive_solve(A, b)})


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
