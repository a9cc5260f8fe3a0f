"""Constrained motion by orthogonal projection  [A05, section 4].

The system is `M a + h = f + Aᵀ lam` with `A a + c = 0`. The projector `P = I - A⁺ A` removes
`lam`, and `(I - P) a = -A⁺ c` gives the motion across the constraint. Rows of `A` may repeat
or vanish: nothing here inverts `A M⁻¹ Aᵀ`. (A05 writes `f - Aᵀ lam`; the sign here is MuJoCo's.)
"""

import casadi as ca

from mbcasadi.formulation.motion import ConstrainedMotion
from mbcasadi.linalg import RANK_TOL, Sym, complement, complete_factor, positive_solve


def constraint_inertia(M: Sym, P: Sym) -> Sym:
    """Return `M_c = M + P M - (P M)ᵀ`  [A05, eq. 23-24].

    The added part is skew-symmetric, so `xᵀ M_c x = xᵀ M x > 0`: `M_c` is invertible whatever
    the rank of `A`. It is not symmetric.

    Args:
        M: (nv, nv) joint-space inertia, symmetric positive definite.
        P: (nv, nv) projector on null(A).
    """
    PM = P @ M
    return M + PM - PM.T


def projection(
    M: Sym,
    h: Sym,
    f: Sym,
    A: Sym,
    c: Sym,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ConstrainedMotion[Sym]:
    """Return `a = M_c⁻¹ (P (f - h) - M A⁺ c)`  [A05, eq. 22 with eq. 13].

    The paper's `C_c q̇ = M C q̇` is `-M A⁺ c` here: that also holds off the manifold, where
    `A v ≠ 0`, and for constraints that depend on time. The force is
    `f_c = (I - P) (M a + h - f)` [A05, eq. 32 with the sign of lam turned], and the
    multipliers `lam = (A⁺)ᵀ f_c` are those of minimum norm [A05, section 5.2].

    Args:
        M: (nv, nv) inertia, symmetric positive definite.
        h: (nv, 1) bias force, passive forces subtracted.
        f: (nv, 1) applied force.
        A: (nc, nv) constraint Jacobian, of any rank.
        c: (nc, 1) constraint bias, `A a + c = 0`.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.
    """
    factor = complete_factor(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    V = factor.basis.V
    P = complement(V)
    along = P @ (f - h)  # force left to move the system
    across = M @ factor.pinv_times(c)  # force that bends its path onto the constraint
    a = positive_solve(constraint_inertia(M, P), along - across)
    f_c = V @ (V.T @ (M @ a + h - f))
    return ConstrainedMotion(a, f_c, factor.pinv_transposed_times(f_c))
