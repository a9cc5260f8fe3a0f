"""Forces and couplings of the projection formulation  [A05, sections 3 and 5].

Pieces around `projection`: the acceleration that a constraint requires, the parts of a force
that move the system and that do not, the constraint force as two channels, and what can be said
about the multipliers.
"""

from typing import Generic, NamedTuple

import casadi as ca

from mbcasadi.formulation.projection import constraint_inertia
from mbcasadi.linalg import RANK_TOL, Sym, complete_factor, positive_solve


class ForceSplit(NamedTuple, Generic[Sym]):
    """`f = potent + impotent`, orthogonal parts.

    Fields: `potent` (nv, 1), in null(A), moves the system; `impotent` (nv, 1), in range(Aᵀ),
    only changes the constraint force.
    """

    potent: Sym
    impotent: Sym


class Multipliers(NamedTuple, Generic[Sym]):
    """Multipliers of a constraint force, and whether there are others.

    Fields: `lam` (nc, 1) those of minimum norm; `unique` one where the rank of A is its number
    of rows, else zero; `undetermined` (nc, nc) projector on null(Aᵀ): every
    `lam + undetermined @ x` gives the same force.
    """

    lam: Sym
    unique: Sym
    undetermined: Sym


def normal_acceleration(A_pinv: Sym, c: Sym) -> Sym:
    """Return `(I - P) a = -A⁺ c`, on the manifold `Ṗ v`  [A05, eq. 13, 16].

    For constraints without time `c = Ȧ v`. The paper's `Ṗ v = -A⁺ Ȧ v` needs `A v = 0`
    (corrected); with `Λ = -A⁺ Ȧ` and `Q = I - P` the difference is `(P Λᵀ - Λ) Q v`.

    Args:
        A_pinv: (nv, nc) pseudo-inverse of the constraint Jacobian.
        c: (nc, 1) constraint bias, `A a + c = 0`.
    """
    return -A_pinv @ c


def force_split(f: Sym, P: Sym) -> ForceSplit[Sym]:
    """Return `f∥ = P f` and `f⊥ = (I - P) f`  [A05, eq. 5, before eq. 25].

    Args:
        f: (nv, p) generalised forces.
        P: (nv, nv) projector on null(A).
    """
    potent = P @ f
    return ForceSplit(potent, f - potent)


def coupling(M: Sym, P: Sym) -> Sym:
    """Return `(I - P) M M_c⁻¹`, from moving forces to constraint forces  [A05, eq. 32, `μ`].

    (The letter mu is the friction coefficient here.) The transpose of `M_c` has a positive
    definite symmetric part too, so the product is one solve.

    Args:
        M: (nv, nv) inertia, symmetric positive definite.
        P: (nv, nv) projector on null(A).
    """
    MQ = M - M @ P
    return positive_solve(constraint_inertia(M, P).T, MQ).T


def channel_force(M: Sym, h: Sym, f: Sym, P: Sym, across: Sym) -> Sym:
    """Return `f_c = h⊥ - f⊥ + μ (f∥ - h∥ + C_c v)`, `C_c v = -M A⁺ c`  [A05, eq. 32].

    Sign of lam turned. `C_c v = M (I - P) a` [A05, eq. 51 corrected: not `C v`]. The first
    part is the direct channel of figure 1, the second the coupled one. It is the `f_c` of
    `projection`, without the acceleration on the way.

    Args:
        M: (nv, nv) inertia, symmetric positive definite.
        h: (nv, 1) bias force, passive forces subtracted.
        f: (nv, 1) applied force.
        P: (nv, nv) projector on null(A).
        across: (nv, 1) `normal_acceleration`.
    """
    total = force_split(f - h, P)
    return coupling(M, P) @ (total.potent + M @ across) - total.impotent


def decoupling(M: Sym, P: Sym) -> Sym:
    """Return `‖(I - P) M P‖ / ‖M‖`, zero iff motion and constraint force decouple  [A05, Prop. 3].

    Frobenius norms, so it lies between 0 and `1/2` for a positive semidefinite M (of the blocks
    `M∥, M×, M⊥` into which A splits M, `‖M×‖² <= ‖M∥‖ ‖M⊥‖`), and up to `1/√2` for others. Zero
    says that `M` maps null(A) into itself; then `M P = P M`, `M_c = M'_c = M`, and moving forces
    f∥ do not act on the constraint force: `coupling @ P = 0`. For positive definite M that holds
    the other way round too: on null(A) the coupling is `(I - P) M P (P M P)⁺`.

    Args:
        M: (nv, nv) inertia, symmetric, not zero.
        P: (nv, nv) projector on null(A).
    """
    MP = M @ P
    return ca.sqrt(ca.sumsqr(MP - P @ MP) / ca.sumsqr(M))


def multipliers(
    A: Sym,
    f_c: Sym,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> Multipliers[Sym]:
    """Return `lam = (A⁺)ᵀ f_c` and whether it is the only one  [A05, section 5.2, Remark 4].

    Args:
        A: (nc, nv) constraint Jacobian, of any rank.
        f_c: (nv, 1) constraint force, in range(Aᵀ).
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.
    """
    factor = complete_factor(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    nc = A.shape[0]
    undetermined = type(A).eye(nc) - factor.U @ factor.U.T
    return Multipliers(
        factor.pinv_transposed_times(f_c), factor.basis.rank >= nc, ca.densify(undetermined)
    )
