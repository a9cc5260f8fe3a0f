"""Constrained motion with Lagrange multipliers: the reference formulation.

    [ M  -Aᵀ ] [ a   ]   [ f - h ]
    [ A   0  ] [ lam ] = [  -c   ]        [S20, eq. 5], [A05, eq. 19-20]

Rows of `A` may repeat or vanish: they are replaced by the orthonormal basis `V` of their
range, `V_iᵀ a = -(A⁺ c)ᵀ V_i`, and the system with the rows `Vᵀ` is solved as in [A05, App. B].
(A05 writes `f - Aᵀ lam`; the sign here is MuJoCo's.)
"""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.formulation.motion import ConstrainedMotion, require_motion
from mbcasadi.linalg import (
    RANK_TOL,
    Sym,
    complete_factor,
    tree_cholesky,
    tree_solve,
    tree_solve_transposed,
)


@checked
def lagrange(
    M: Sym,
    h: Sym,
    f: Sym,
    A: Sym,
    c: Sym,
    *,
    semidefinite: bool = False,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ConstrainedMotion[Sym]:
    """Return `a = M⁻¹ (f - h + V y)` with `Vᵀ M⁻¹ V y = -Vᵀ (A⁺ c + M⁻¹ (f - h))`.

    `Vᵀ M⁻¹ V` is positive definite on the columns in use whatever the rank of `A`. Where the
    rows of `A a = -c` contradict each other (a drifted state), they hold in the least-squares
    sense: `A⁺ A a = -A⁺ c`.

    An `M` that is positive definite on null(A) only becomes positive definite by inertia across
    the constraint, `M + s V Vᵀ`; what this adds to `M a` is known, `-s A⁺ c`, since
    `Vᵀ a = -Vᵀ A⁺ c`, and lies in range(V): it changes `y` and nothing else.

    Args:
        M: (nv, nv) inertia, symmetric positive definite; a tree's structural zeros are used.
        h: (nv, 1) bias force, passive forces subtracted.
        f: (nv, 1) applied force.
        A: (nc, nv) constraint Jacobian, of any rank.
        c: (nc, 1) constraint bias, `A a + c = 0`.
        semidefinite: M is positive semidefinite, and definite on null(A).
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.
    """
    require_motion(M, h, f, A, c)
    factor = complete_factor(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    V, used = factor.basis.V, factor.basis.used
    a_across = factor.pinv_times(c)  # minus the acceleration that the constraint requires
    inertia = M + mean_inertia(M) * (V @ V.T) if semidefinite else M
    L = tree_cholesky(inertia)
    X = tree_solve_transposed(L, V)  # M⁻¹ = L⁻¹ L⁻ᵀ, so Xᵀ X = Vᵀ M⁻¹ V
    a_free = tree_solve(L, f - h)
    S = tree_cholesky(X.T @ X + ca.diag(1 - used))
    y = -tree_solve(S, V.T @ (a_across + a_free))
    a = a_free + tree_solve(L, V @ y)
    f_c = V @ (y + mean_inertia(M) * (V.T @ a_across)) if semidefinite else V @ y
    return ConstrainedMotion(a, f_c, factor.pinv_transposed_times(f_c))


def mean_inertia(M: Sym) -> Sym:
    """Return trace(M)/nv, a scale of inertia that is positive for every M but zero."""
    return ca.trace(M) / M.shape[0]
