"""Constrained dynamics as an affine map of the actuator forces.

From `M a = f + B p + Gᵀ lam` and `G a + c = 0` follow

    a = T p + t,   lam = -R⁻¹ (Y_B p + y_0),

whatever the rank of G: with `M = Lᵀ L` and `X = L⁻ᵀ Gᵀ = Y R` (columns of Y orthonormal, those
of dependent rows zero) the projector in the mass metric is `I - Y Yᵀ`. Dependent rows get a
zero multiplier. Nothing here inverts `G M⁻¹ Gᵀ`.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi import linalg


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
    """

    T: ca.SX
    t: ca.SX
    Y_B: ca.SX
    y_0: ca.SX
    R: ca.SX
    R_inv_diag: ca.SX
    kept: ca.SX


def condense(dynamics: Dynamics, rank_tol: float) -> Condensed:
    """Return the condensed dynamics.

    With `F = L⁻¹ Y`: `T = M⁻¹ B - F Y_B`, `Y_B = Fᵀ B`, `y_0 = Fᵀ f + R⁻ᵀ c`,
    `t = M⁻¹ f - F y_0`.

    Args:
        dynamics: the matrices; structural zeros are used.
        rank_tol: a row is dropped when the part of it that is independent of the rows above,
            in the mass metric, is at most this fraction of its own length, or of the length
            of a row of ones on the same joints (so that a vanishing row is dropped too).
    """
    M, f, B, G, c = dynamics
    L = linalg.tree_cholesky(M)
    X = linalg.tree_solve_transposed(L, G.T)
    basis = linalg.row_basis(X.T, row_scale=unit_row_lengths(M, G), rank_tol=rank_tol, pivot=False)
    R, kept = basis.R, basis.kept
    R_inv_diag = kept / ca.if_else(kept, ca.diag(R), 1)
    F = linalg.tree_solve_lower(L, basis.V)
    Y_B = F.T @ B
    y_0 = F.T @ f + solve_upper_transposed(R, R_inv_diag, c)
    Z = linalg.tree_solve_transposed(L, B)
    T = linalg.tree_solve_lower(L, Z) - F @ Y_B
    t = linalg.tree_solve(L, f) - F @ y_0
    return Condensed(_symmetric_rows(T, B, Z, Y_B), t, Y_B, y_0, R, R_inv_diag, kept)


def multipliers(condensed: Condensed, p: ca.SX) -> ca.SX:
    """Return `lam = -R⁻¹ (Y_B p + y_0)` (m,)."""
    rhs = condensed.Y_B @ p + condensed.y_0
    return -solve_upper(condensed.R, condensed.R_inv_diag, rhs)


def unit_row_lengths(M: ca.SX, G: ca.SX) -> ca.SX:
    """Return (m,) lengths `(Σ_j 1/M_jj)^½` over the joints j that each row of G can touch."""
    if G.shape[0] == 0:
        return ca.SX(0, 1)
    lightness = 1 / ca.diag(M)
    touched = ca.DM(G.sparsity(), 1)
    return ca.densify(ca.sqrt(touched @ lightness))


def solve_upper(R: ca.SX, inv_diag: ca.SX, b: ca.SX) -> ca.SX:
    """Return `R⁻¹ b` by back substitution; zero rows where `inv_diag` is zero."""
    x = ca.SX(b)
    for i in reversed(range(R.shape[0])):
        x[i, :] = x[i, :] * inv_diag[i]
        for j in (j for j in range(i) if R.sparsity().has_nz(j, i)):
            x[j, :] = x[j, :] - R[j, i] * x[i, :]
    return x


def solve_upper_transposed(R: ca.SX, inv_diag: ca.SX, b: ca.SX) -> ca.SX:
    """Return `R⁻ᵀ b` by forward substitution; zero rows where `inv_diag` is zero."""
    x = ca.SX(b)
    for i in range(R.shape[0]):
        for j in (j for j in range(i) if R.sparsity().has_nz(j, i)):
            x[i, :] = x[i, :] - R[j, i] * x[j, :]
        x[i, :] = x[i, :] * inv_diag[i]
    return x


def _symmetric_rows(T: ca.SX, B: ca.SX, Z: ca.SX, Y_B: ca.SX) -> ca.SX:
    """Return T with half of its symmetric part written once.

    `Bᵀ T = Zᵀ Z - Y_Bᵀ Y_B` is symmetric; where a column of B is one constant on one joint,
    that joint's row of T is a row of this matrix over the constant.
    """
    direct = _direct_drives(B)
    if not direct:
        return T
    S = ca.triu(Z.T @ Z - Y_B.T @ Y_B)
    S = ca.triu2symm(S)
    for column, (dof, gear) in direct.items():
        T[dof, :] = S[column, :] / gear
    return T


def _direct_drives(B: ca.SX) -> dict[int, tuple[int, float]]:
    """Return column → (row, constant) for columns of B with one entry on a row of their own."""
    drives: dict[int, tuple[int, float]] = {}
    for column in range(B.shape[1]):
        rows = B[:, column].sparsity().row()
        entry = B[rows[0], column] if len(rows) == 1 else None
        if entry is None or not entry.is_constant() or float(entry) == 0.0:
            continue
        if rows[0] not in {dof for dof, _ in drives.values()}:
            drives[column] = (rows[0], float(entry))
    return drives
