"""Constrained motion in quasi-velocities  [A10, section 3].

With a root factor `M = W Wᵀ` the quasi-velocities `v_bar = Wᵀ v` have kinetic energy
`‖v_bar‖² / 2` and one unit, √kg m/s, whatever q consists of; forces become `u = W⁻¹ f`. The
constraint is `A_W v_bar = 0` with `A_W = A W⁻ᵀ`, and orthonormal bases `V1` of range(A_Wᵀ) and
`V2` of null(A_W) split motion from constraint force: `V2` carries the one, `V1` the other, and
neither acts on the other. Rows of `A` may repeat or vanish. (A10 writes `f - Aᵀ lam`; the sign
here is MuJoCo's.)

The rank is decided on the rows of `A`, as in every other formulation: those of `A_W` are as long
as the bodies are light, and a heavy body must not make a row look like a repeated one.
"""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.formulation.motion import ConstrainedMotion, require_motion
from mbcasadi.formulation.root import constraint_basis, root_factor
from mbcasadi.linalg import RANK_TOL, Sym


@checked
def quasi_velocity(
    M: Sym,
    h: Sym,
    f: Sym,
    A: Sym,
    c: Sym,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    root: str = "cholesky",
) -> ConstrainedMotion[Sym]:
    """Return `a = W⁻ᵀ (V2 u_r + V1 s_o)`, `f_c = W V1 (s_o - u_o)`  [A10, eq. 31].

    `u_r = V2ᵀ W⁻¹ (f - h)` and `u_o = V1ᵀ W⁻¹ (f - h)` are the quasi-forces along and across
    the constraint, `s_o` the rate across it that the constraint requires; h holds what A10
    splits off as Coriolis terms. `V2 u_r = W⁻¹ (f - h) - V1 u_o`: the motion needs no basis of
    the free directions, and does not jump where such a basis would. `lam` is the multiplier of
    minimum norm [A10, eq. 33, sign turned].

    Args:
        M: (nv, nv) inertia, symmetric positive definite.
        h: (nv, 1) bias force, passive forces subtracted.
        f: (nv, 1) applied force.
        A: (nc, nv) constraint Jacobian, of any rank.
        c: (nc, 1) constraint bias, `A a + c = 0`.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.
        root: "cholesky" or "symmetric"; both give the same motion.

    Raises:
        UnknownNameError: no such root; the message lists the names.
    """
    require_motion(M, h, f, A, c)
    factor = root_factor(M, root)
    rows = constraint_basis(factor, A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    u = factor.divide(f - h)
    constraint_rate = rows.rate(c) - rows.V1.T @ u  # s_o - u_o, due to the constraint force
    f_c = rows.force(constraint_rate)
    a = factor.divide_transposed(u + rows.V1 @ constraint_rate)
    return ConstrainedMotion(a, f_c, rows.factor.pinv_transposed_times(f_c))
