"""Constrained dynamics as an affine map of the actuator forces.

From `M a = f + B p + Gᵀ lam` and `G a + c = 0` follow

    a = T p + t,   lam = -R⁻¹ (Y_B p + y_0),

whatever the rank of G: with `M = Lᵀ L` and `X = L⁻ᵀ Gᵀ = Y R` (columns of Y orthonormal, those
of dependent rows zero) the projector in the mass metric is `I - Y Yᵀ`. Dependent rows get a
zero multiplier. Nothing here inverts `G M⁻¹ Gᵀ`.

Where M is singular (a massless coordinate, Euler parameters) it is replaced by `M + s V Vᵀ`, with
V from the active bilateral rows, and f by `f + s V Vᵀ a`, which these rows determine: the motion
is the same, and `M + s V Vᵀ` is definite where M is definite on null(A). See `singular_inertia.py`.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi import linalg
from mbcasadi.qp.kkt_residuals import length
from mbcasadi.system.actuator_model import direct_drives


class Dynamics(NamedTuple):
    """`M a = f + B p + Gᵀ lam`, `G a + c = 0`.

    Attributes:
        M: (nv, nv) inertia.
        f: (nv,) all forces that depend on neither p nor lam.
        B: (nv, np) moments of the actuator forces p.
        G: (m, nv) active constraint rows; rows that are switched off are zero.
        c: (m,) their bias.
    """

    M: ca.SX
    f: ca.SX
    B: ca.SX
    G: ca.SX
    c: ca.SX


class Condensed(NamedTuple):
    """What is left when `a` and `lam` are eliminated.

    Attributes:
        T, t: `a = T p + t`, (nv, np) and (nv,).
        Y_B, y_0: (m, np), (m,) of `lam = -R⁻¹ (Y_B p + y_0)`.
        R: (m, m) upper triangular.
        R_inv_diag: (m,) reciprocals of its diagonal, zero for dropped rows.
        kept: (m,) one for kept rows, zero for dependent, vanishing or inactive ones.
        a_ref: size `(aᵀ M a)^½` of the accelerations that forces and constraints require.
        slip: size `(vᵀ M v)^½` of the part of v across the kept rows.
        definite: least share of a pivot of M that is left by those before it; NaN or below
            `LEAST_PIVOT` where M is not definite.
    """

    T: ca.SX
    t: ca.SX
    Y_B: ca.SX
    y_0: ca.SX
    R: ca.SX
    R_inv_diag: ca.SX
    kept: ca.SX
    a_ref: ca.SX
    slip: ca.SX
    definite: ca.SX


LEAST_PIVOT = 1e-11
"""A pivot of M below this share of its diagonal entry is rounding: M is not definite."""


def condense(
    dynamics: Dynamics, v: ca.SX, *, row_scale: ca.SX | ca.DM, rank_tol: float
) -> Condensed:
    """Return the condensed dynamics.

    With `F = L⁻¹ Y`: `T = M⁻¹ B - F Y_B`, `Y_B = Fᵀ B`, `y_0 = Fᵀ f + R⁻ᵀ c`,
    `t = M⁻¹ f - F y_0`.

    Args:
        dynamics: the matrices, M definite; structural zeros are used.
        v: (nv,) velocity.
        row_scale: (m,) usual length of each row in the mass metric.
        rank_tol: a row is dropped when the part of it that is independent of the rows above,
            in the mass metric, is at most this fraction of its own length or of its usual one
            (so that a vanishing row is dropped too).
    """
    M, f, B, G, c = dynamics
    L = linalg.tree_cholesky(M)
    X = linalg.tree_solve_transposed(L, G.T)
    basis = linalg.row_basis(X.T, row_scale=row_scale, rank_tol=rank_tol, pivot=False)
    R, R_inv_diag = basis.R, linalg.inverse_diagonal(basis)
    F = linalg.tree_solve_lower(L, basis.V)
    Y_B = F.T @ B
    y_c = linalg.solve_upper_transposed(R, R_inv_diag, c)
    y_0 = F.T @ f + y_c
    Z, z = linalg.tree_solve_transposed(L, B), linalg.tree_solve_transposed(L, f)
    T = linalg.tree_solve_lower(L, Z) - F @ Y_B
    return Condensed(
        T=_symmetric_rows(T, B, Z, Y_B),
        t=linalg.tree_solve_lower(L, z) - F @ y_0,
        Y_B=Y_B,
        y_0=y_0,
        R=R,
        R_inv_diag=R_inv_diag,
        kept=basis.kept,
        a_ref=length(z) + length(y_c),
        slip=length(basis.V.T @ (L @ v)),
        definite=ca.mmin(ca.densify(ca.diag(L) ** 2 / ca.diag(M))),
    )


def multipliers(condensed: Condensed, p: ca.SX) -> ca.SX:
    """Return `lam = -R⁻¹ (Y_B p + y_0)` (m,)."""
    rhs = condensed.Y_B @ p + condensed.y_0
    return -linalg.solve_upper(condensed.R, condensed.R_inv_diag, rhs)


def _symmetric_rows(T: ca.SX, B: ca.SX, Z: ca.SX, Y_B: ca.SX) -> ca.SX:
    """Return T with half of its symmetric part written once.

    `Bᵀ T = Zᵀ Z - Y_Bᵀ Y_B` is symmetric; where a column of B is one constant on one joint,
    that joint's row of T is a row of this matrix over the constant.
    """
    direct = direct_drives(B)
    if not direct:
        return T
    S = ca.triu(Z.T @ Z - Y_B.T @ Y_B)
    S = ca.triu2symm(S)
    for column, (dof, gear) in direct.items():
        T[dof, :] = S[column, :] / gear
    return T
