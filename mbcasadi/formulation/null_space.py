"""Constrained motion in the null space of the constraint  [S20, eq. 16-21].

`Aᵀ = [V Z] [R; 0]` with orthonormal `V` in range(Aᵀ) and `Z` in null(A). The lower part of the
equations of motion, `Zᵀ (M a + h - f) = 0`, holds no multiplier and gives the motion; the upper
part gives `lam`. S20 inverts `R`, which requires full row rank; here rows may repeat or vanish:
`Z` has a fixed size (nv, nv), and as many zero columns as `A` has rank.

`Z` may jump where the order of the pivots changes; `Z Zᵀ`, the motion and the forces do not.
"""

from typing import Generic, NamedTuple

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.formulation.motion import ConstrainedMotion, require_motion
from mbcasadi.linalg import (
    RANK_TOL,
    CompleteFactor,
    Sym,
    complete_factor,
    complete_factor_and_null_basis,
    tree_cholesky,
    tree_solve,
)


class ReducedEquations(NamedTuple, Generic[Sym]):
    """`M_r y + h_r = Zᵀ f` with `a = a_across + Z y`: the motion in independent directions.

    Fields: `Z` (nv, nv) orthonormal or zero columns; `M_r` (nv, nv) inertia `Zᵀ M Z`, one on the
    diagonal where a column of `Z` is zero; `h_r` (nv, 1) bias force; `a_across` (nv, 1)
    acceleration that the constraint alone requires.
    """

    Z: Sym
    M_r: Sym
    h_r: Sym
    a_across: Sym


class NullSpaceInverse(NamedTuple, Generic[Sym]):
    """Controls and multipliers of a motion: `M a + h = B u + Aᵀ lam + residual`.

    Fields: `u` (nu, 1) control of minimum norm; `lam` (nc, 1) multipliers of minimum norm;
    `residual` (nv, 1) force that neither can give, zero where the motion is possible. Norms are
    Euclidean and depend on units: `control.laws.qr_inverse_dynamics` has metrics.
    """

    u: Sym
    lam: Sym
    residual: Sym


@checked
def null_space(
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
    """Return `a = -A⁺ c + Z y`, `(Zᵀ M Z) y = Zᵀ (f - h + M A⁺ c)`  [S20, eq. 19].

    The multipliers are `lam = A⁺ᵀ (M a + h - f)`, eq. 21 with `A⁺ᵀ` in the place of `R⁻¹ S₁ Qᵀ`:
    the same for independent rows, and of minimum norm for others. `M` need only be positive
    definite on null(A).

    Args:
        M: (nv, nv) inertia, symmetric.
        h: (nv, 1) bias force, passive forces subtracted.
        f: (nv, 1) applied force.
        A: (nc, nv) constraint Jacobian, of any rank.
        c: (nc, 1) constraint bias, `A a + c = 0`.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.
    """
    require_motion(M, h, f, A, c)
    factor, Z = complete_factor_and_null_basis(
        A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot
    )
    equations = _reduce(M, h, c, factor, Z)
    y = tree_solve(tree_cholesky(equations.M_r), Z.T @ f - equations.h_r)
    a = equations.a_across + Z @ y
    V = factor.basis.V
    f_c = V @ (V.T @ (M @ a + h - f))
    return ConstrainedMotion(a, f_c, factor.pinv_transposed_times(f_c))


def reduced_equations(
    M: Sym,
    h: Sym,
    A: Sym,
    c: Sym,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ReducedEquations[Sym]:
    """Return the equations of motion without multipliers  [S20, second of eq. 19].

    `M_r = Zᵀ M Z`, `h_r = Zᵀ (h - M A⁺ c)`.

    Args:
        M: (nv, nv) inertia, symmetric.
        h: (nv, 1) bias force, passive forces subtracted.
        A: (nc, nv) constraint Jacobian, of any rank.
        c: (nc, 1) constraint bias, `A a + c = 0`.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.
    """
    factor, Z = complete_factor_and_null_basis(
        A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot
    )
    return _reduce(M, h, c, factor, Z)


def null_space_inverse(
    M: Sym,
    h: Sym,
    A: Sym,
    B: Sym,
    a: Sym,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> NullSpaceInverse[Sym]:
    """Return `u = (Zᵀ B)⁺ Zᵀ (M a + h)`, `lam = A⁺ᵀ (M a + h - B u)`  [S20, eq. 20-21].

    `u` is the solution of the quadratic program [S20, eq. 22] that minimises `|u|`. An actuator
    counts as repeated when the remainder of its column of `Zᵀ B` beside the others is below
    `rank_tol · |B_i|`, so that one that only pushes against the constraints drops out.

    Args:
        M: (nv, nv) inertia, symmetric.
        h: (nv, 1) bias force, passive forces subtracted.
        A: (nc, nv) constraint Jacobian, of any rank.
        B: (nv, nu) actuation matrix, of any rank.
        a: (nv, 1) desired acceleration; it should obey `A a + c = 0`.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis` for the rows of `A`.
    """
    factor, Z = complete_factor_and_null_basis(
        A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot
    )
    required_force = M @ a + h
    size = ca.sqrt(ca.densify(ca.sum1(B**2)).T)
    actuators = complete_factor(B.T @ Z, row_scale=size, rank_tol=rank_tol)
    u = actuators.pinv_transposed_times(Z.T @ required_force)
    remainder = required_force - B @ u
    lam = factor.pinv_transposed_times(remainder)
    V = factor.basis.V
    return NullSpaceInverse(u, lam, remainder - V @ (V.T @ remainder))


def inconsistency(
    B: Sym, w: Sym, *, rank_tol: float = RANK_TOL, row_scale: Sym | ca.DM | float = 1.0
) -> Sym:
    """Return `|(I - B B⁺) w|`, zero exactly where `B u = w` has a solution  [S20, eq. 14].

    In S20 `w` is `dx/dt - A x - c` of a linear system. For a constrained mechanism take `Zᵀ B`
    and `Zᵀ (M a + h)`; the result is then the length of the `residual` of `null_space_inverse`.

    Args:
        B: (n, nu) matrix of any rank.
        w: (n, 1) vector; the result has its unit.
        rank_tol, row_scale: drop rule of `linalg.row_basis` for the columns of `B`.
    """
    V = complete_factor(B.T, row_scale=row_scale, rank_tol=rank_tol).basis.V
    return ca.norm_2(w - V @ (V.T @ w))


def _reduce(M: Sym, h: Sym, c: Sym, factor: CompleteFactor[Sym], Z: Sym) -> ReducedEquations[Sym]:
    a_across = -factor.pinv_times(c)
    # exactly zero or one: what rounding leaves of 1 - 1 is not small beside an inertia in g mm²
    empty = ca.densify(ca.sum1(Z**2)).T < 0.5
    M_r = Z.T @ M @ Z + ca.diag(empty)
    return ReducedEquations(Z, M_r, Z.T @ (h + M @ a_across), a_across)
