"""Constrained motion by orthogonal projection  [A05, section 5].

The system is `M a + h = f + Aᵀ lam` with `A a + c = 0`. The projector `P = I - A⁺ A` removes
`lam`, and `(I - P) a = -A⁺ c` gives the motion across the constraint. The two equations are
in orthogonal spaces; three ways to add them up give three constraint inertias. Rows of `A` may
repeat or vanish: nothing here inverts `A M⁻¹ Aᵀ`. (A05 writes `f - Aᵀ lam`; the sign here is
MuJoCo's.)
"""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.formulation.motion import ConstrainedMotion, require_motion
from mbcasadi.linalg import (
    RANK_TOL,
    Sym,
    complement,
    complete_factor,
    positive_solve,
    row_basis,
    tree_cholesky,
    tree_solve,
)
from mbcasadi.shapes import require_name, require_shape, require_square

INERTIAS = ("M_c", "M_c_prime", "M_c_second")
"""Names of the constraint inertias of [A05, eq. 23, 28, 29]."""


@checked
def constraint_inertia(M: Sym, P: Sym) -> Sym:
    """Return `M_c = M + P M - (P M)ᵀ`  [A05, eq. 23-24].

    The added part is skew-symmetric, so `xᵀ M_c x = xᵀ M x > 0`: `M_c` is invertible whatever
    the rank of `A`. It is not symmetric.

    Args:
        M: (nv, nv) joint-space inertia, symmetric positive definite.
        P: (nv, nv) projector on null(A).
    """
    require_square("M", M)
    require_shape("P", P, (M.shape[0], M.shape[0]), "(nv, nv)")
    PM = P @ M
    return M + PM - PM.T


def symmetric_constraint_inertia(M: Sym, P: Sym) -> Sym:
    """Return `M'_c = P M P + (I - P) M (I - P) = M - P M - (P M)ᵀ + 2 P M P`  [A05, eq. 28].

    Symmetric; `xᵀ M'_c x = x∥ᵀ M x∥ + x⊥ᵀ M x⊥ > 0`. Its eigenvalues lie between those of `M`,
    so its condition is not worse. The second form takes two products in place of four.

    Args:
        M: (nv, nv) joint-space inertia, symmetric positive definite.
        P: (nv, nv) projector on null(A).
    """
    PM = P @ M
    return M - PM - PM.T + 2 * PM @ P


def parameterized_constraint_inertia(M: Sym, P: Sym, gamma: Sym | float) -> Sym:
    """Return `M''_c = P M + γ (I - P)`  [A05, eq. 29].

    Invertible for every γ > 0 where `M` is positive definite on null(A) [A05, Prop. 2
    corrected: "invertible" is not enough, see `diag(1, -1)`]: from `M''_c x = 0` follow
    `x = P x` and `xᵀ M x = 0`. It is not symmetric. For `γ > ‖M‖₂ / 4` and M positive
    semidefinite its symmetric part is positive definite as well: `A` splits `M` in blocks
    `M∥, M×, M⊥`, the Schur complement is `γ I - M×ᵀ M∥⁻¹ M× / 4`, and
    `M×ᵀ M∥⁻¹ M× <= M⊥ <= ‖M‖₂ I`.

    Args:
        M: (nv, nv) inertia, symmetric, positive definite on null(A).
        P: (nv, nv) projector on null(A).
        gamma: any positive number, in the unit of M.
    """
    Q = type(P).eye(P.shape[0]) - P
    return P @ M + gamma * Q


def inertia_norm(M: Sym) -> Sym:
    """Return the Frobenius norm of M, the default γ  [A05, after eq. 31: "a logical choice"].

    It takes no eigenvalues and is never below `‖M‖₂`, as elimination without pivoting requires.
    """
    return ca.sqrt(ca.sumsqr(M))


@checked
def projection(
    M: Sym,
    h: Sym,
    f: Sym,
    A: Sym,
    c: Sym,
    *,
    inertia: str = "M_c",
    gamma: Sym | float | None = None,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ConstrainedMotion[Sym]:
    """Return `a = M_c⁻¹ (P (f - h) - M A⁺ c)`  [A05, eq. 22 with eq. 13].

    The paper's `C_c q̇ = M C q̇` is `-M A⁺ c` here: that also holds off the manifold, where
    `A v ≠ 0`, and for constraints that depend on time. The other two inertias give the same
    acceleration:

        M'_c  a = P (f - h) + (2 P - I) M A⁺ c      [A05, eq. 27, sign of C'_c as printed]
        M''_c a = P (f - h) - γ A⁺ c                [A05, eq. 29]

    The force is `f_c = (I - P) (M a + h - f)` [A05, eq. 32 with the sign of lam turned], and
    the multipliers `lam = (A⁺)ᵀ f_c` are those of minimum norm [A05, section 5.2].

    Args:
        M: (nv, nv) inertia, symmetric positive definite; with "M_c_second" it is enough that
            it is positive semidefinite, and definite on null(A).
        h: (nv, 1) bias force, passive forces subtracted.
        f: (nv, 1) applied force.
        A: (nc, nv) constraint Jacobian, of any rank.
        c: (nc, 1) constraint bias, `A a + c = 0`.
        inertia: "M_c", "M_c_prime" (symmetric) or "M_c_second" (fewest operations).
        gamma: γ > 0 of "M_c_second", in the unit of M; default `inertia_norm`.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.

    Raises:
        UnknownNameError: no such inertia; the message lists the names.
        ProblemError: γ is not positive, or given for an inertia without it.
    """
    require_motion(M, h, f, A, c)
    _check_options(inertia, gamma)
    factor = complete_factor(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    V = factor.basis.V
    P = complement(V)
    along = P @ (f - h)  # force that moves the system
    across = factor.pinv_times(c)  # minus the acceleration that the constraint requires
    if inertia == "M_c":
        a = positive_solve(constraint_inertia(M, P), along - M @ across)
    elif inertia == "M_c_prime":
        bend = M @ across
        L = tree_cholesky(symmetric_constraint_inertia(M, P))
        a = tree_solve(L, along + 2 * P @ bend - bend)
    else:
        a = _solve_parameterized(M, P, gamma, along, across)
    f_c = V @ (V.T @ (M @ a + h - f))
    return ConstrainedMotion(a, f_c, factor.pinv_transposed_times(f_c))


def _solve_parameterized(M: Sym, P: Sym, gamma: Sym | float | None, along: Sym, across: Sym) -> Sym:
    """Return `M''_c⁻¹ (along - γ across)`.

    With the default γ elimination is safe without pivoting: besides a positive definite
    symmetric part T, the skew part S has `‖S T⁻¹ S‖ <= ‖M‖ / 2`, so no factor grows, however
    small M is on null(A). For any other γ that may fail: then `M''_cᵀ = Q R` is factored.
    """
    scale = inertia_norm(M) if gamma is None else gamma
    M_c = parameterized_constraint_inertia(M, P, scale)
    rhs = along - scale * across
    if gamma is None:
        return positive_solve(M_c, rhs)
    basis = row_basis(M_c, row_scale=0.0, rank_tol=0.0, pivot=False)
    return basis.V @ ca.solve(basis.R.T, rhs)


def _check_options(inertia: str, gamma: object) -> None:
    require_name("constraint inertia", inertia, INERTIAS)
    if gamma is None:
        return
    if inertia != "M_c_second":
        raise ProblemError(
            f"gamma belongs to inertia='M_c_second', found inertia={inertia!r}; omit gamma"
        )
    if isinstance(gamma, int | float) and not gamma > 0:
        raise ProblemError(f"gamma is {gamma}, expected a positive number in the unit of M")
