"""Constrained motion with a virtual mass across the constraint  [A16].

The system is `M a + h = f + Aᵀ lam` with `A a + c = 0`. With `P = I - A⁺ A` and `Q = I - P`,

    M̄ a = P (f - h + M A⁺ c) - μ A⁺ c,    M̄ = P M P + μ Q.

The virtual mass μ > 0 is free: it changes neither the motion nor its kinetic energy, only the
condition of `M̄`. `M̄` is symmetric positive definite whatever the rank of `A`, at singular
poses too, and `M` needs to be definite on null(A) only.
"""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.formulation.motion import ConstrainedMotion, require_motion
from mbcasadi.linalg import RANK_TOL, Sym, complement, complete_factor, tree_cholesky, tree_solve
from mbcasadi.shapes import require_scale


def constraint_mass(M: Sym, P: Sym, virtual_mass: Sym | float) -> Sym:
    """Return `M̄ = P M P + μ (I - P)`  [A16, eq. 8b].

    `xᵀ M̄ x = x∥ᵀ M x∥ + μ ‖x⊥‖² > 0`  [A16, eq. 9]. Its eigenvalues are μ, as often as A has
    independent rows, and those of `M` on null(A)  [A16, eq. 13].

    Args:
        M: (nv, nv) inertia, symmetric, positive definite on null(A).
        P: (nv, nv) projector on null(A).
        virtual_mass: μ > 0, in the unit of M.
    """
    return P @ M @ P + virtual_mass * (type(P).eye(P.shape[0]) - P)


def mean_mass(M: Sym, P: Sym, rank: Sym | float) -> Sym:
    """Return `μ = trace(P M) / (nv - rank)`, the mean inertia of the free motions.

    `trace(P M) = trace(P M P)` is the sum of the `nv - rank` nonzero eigenvalues of `P M P`,
    and a mean lies between the smallest and the largest: inside the interval [A16, eq. 12],
    where the condition of `M̄` is least. Where nothing can move, the interval is empty and
    `trace(M) / nv` is taken.

    Args:
        M: (nv, nv) inertia, symmetric, positive definite on null(A).
        P: (nv, nv) projector on null(A).
        rank: rank of A.
    """
    nv = M.shape[0]
    freedom = nv - rank
    moves = freedom > 0
    total = ca.if_else(moves, ca.sum1(ca.sum2(P * M)), ca.trace(M))
    return total / ca.if_else(moves, freedom, nv)


@checked
def virtual_mass(
    M: Sym,
    h: Sym,
    f: Sym,
    A: Sym,
    c: Sym,
    *,
    virtual_mass: Sym | float | None = None,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ConstrainedMotion[Sym]:
    """Return `a = M̄⁻¹ P (f - h + M A⁺ c) - A⁺ c`  [A16, eq. 27 corrected].

    The paper's `Λ v = -A⁺ Ȧ v` is `-A⁺ c` here: that also holds off the manifold, where
    `A v ≠ 0`, and for constraints that depend on time; `μ M̄⁻¹ Q = Q` takes μ out of the
    second term. The force is `f_c = -S (f - h + M A⁺ c)`, `S = I - M M̄⁻¹ P` [A16, eq. 29],
    computed as `Q (M a + h - f)`; `lam = (A⁺)ᵀ f_c` are the multipliers of minimum norm.

    Args:
        M: (nv, nv) inertia, symmetric, positive definite on null(A).
        h: (nv, 1) bias force, passive forces subtracted.
        f: (nv, 1) applied force.
        A: (nc, nv) constraint Jacobian, of any rank.
        c: (nc, 1) constraint bias, `A a + c = 0`.
        virtual_mass: μ > 0, in the unit of M; default `mean_mass`.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.

    Raises:
        ProblemError: μ is not positive.
    """
    require_motion(M, h, f, A, c)
    require_scale("virtual_mass", virtual_mass, 1)
    if isinstance(virtual_mass, int | float) and not virtual_mass > 0:
        raise ProblemError(
            f"virtual_mass is {virtual_mass}, expected a positive number in the unit of M"
        )
    factor = complete_factor(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    V = factor.basis.V
    P = complement(V)
    mass = mean_mass(M, P, factor.basis.rank) if virtual_mass is None else virtual_mass
    across = factor.pinv_times(c)  # minus the acceleration that the constraint requires
    along = P @ (f - h + M @ across)  # force that moves the system along the constraint
    a = tree_solve(tree_cholesky(constraint_mass(M, P, mass)), along) - across
    f_c = V @ (V.T @ (M @ a + h - f))
    return ConstrainedMotion(a, f_c, factor.pinv_transposed_times(f_c))
