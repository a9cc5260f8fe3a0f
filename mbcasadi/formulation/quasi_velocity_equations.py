"""Equations of motion and of constraint force in quasi-velocities  [A10, eq. 6-33].

    v̄̇ + Γ v̄ = u + A_Wᵀ lam                         along and across together
    v̇_r + Γ_r v_r = u_r                            motion, with v_r = V2ᵀ v̄
    A_Wᵀ lam = V1 (Γ_o v_r - u_o)                  constraint force

`C` is a Coriolis matrix with `Ṁ = C + Cᵀ` (`System.coriolis_matrix`). Then Γ is skew-symmetric,
without a derivative along q, so with quaternions too. A10's own Γ (eq. 7b) has the same product
with v̄ and is not skew.

**Sizes.** The number of reduced quasi-velocities follows the rank. V2 keeps nv columns, zero
where a direction is not free, so v_r, u_r and Γ_r keep their size too, with zeros in the same
places.

**Gauge.** V1 and V2 are bases of two spaces, no more: `V2 → V2 O` changes v_r and Γ_r, and no
motion. Γ_r is skew in any gauge; it holds `V2ᵀ V̇2`, the turning of the basis within its space,
which is zero here: the gauge of parallel transport, and that of A10 eq. 34-36. V1ᵀ V̇2 is fixed
by the constraint, so `Γ_o = (V1ᵀ W⁻¹ C - R⁻ᵀ Vᵀ A⁺ Ȧ) W⁻ᵀ V2` depends on the bases only.
"""

from typing import Generic, NamedTuple

import casadi as ca

from mbcasadi.formulation.root import (
    ROOTS,
    ConstraintBasis,
    RootFactor,
    constraint_basis,
    root_factor,
)
from mbcasadi.linalg import (
    RANK_TOL,
    Sym,
    matrix_root,
    matrix_root_fun,
    null_basis,
    row_basis,
    tree_cholesky,
    tree_solve_transposed,
)
from mbcasadi.shapes import require_name


class QuasiTerms(NamedTuple, Generic[Sym]):
    """Motion and constraint force in quasi-velocities, as in the module's docstring.

    Fields: `W` (nv, nv) root factor; `A_W` (nc, nv) `A W⁻ᵀ` [A10, eq. 19]; `V1` (nv, k) and `V2`
    (nv, nv) orthonormal bases across and along, zero columns where a direction is not of that
    kind; `v_bar`, `u_bar` (nv, 1) quasi-velocities, √kg m/s, and quasi-forces, √kg m/s²
    [eq. 6]; `Gamma` (nv, nv) skew [eq. 7b corrected]; `v_r`, `u_r` (nv, 1), `Gamma_r` (nv, nv)
    of the motion; `v_o`, `u_o` (k, 1), `Gamma_o` (k, nv) of the constraint force [eq. 28-30];
    `v_o` vanishes on the manifold.
    """

    W: Sym
    A_W: Sym
    V1: Sym
    V2: Sym
    v_bar: Sym
    u_bar: Sym
    Gamma: Sym
    v_r: Sym
    u_r: Sym
    Gamma_r: Sym
    v_o: Sym
    u_o: Sym
    Gamma_o: Sym


def quasi_terms(
    M: Sym,
    C: Sym,
    v: Sym,
    f: Sym,
    A: Sym,
    Adot: Sym,
    *,
    root: str = "cholesky",
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> tuple[QuasiTerms[Sym], Sym]:
    """Return the terms and the multipliers lam of minimum norm  [A10, eq. 33, sign turned].

    Γ_r is in the gauge `V2ᵀ V̇2 = 0`; for another one add that. The multipliers take
    `A v = 0` and constraints without time; `quasi_velocity` needs neither.

    Args:
        M: (nv, nv) inertia, symmetric positive definite.
        C: (nv, nv) Coriolis matrix, `Ṁ = C + Cᵀ`.
        v: (nv, 1) velocity.
        f: (nv, 1) all forces but Coriolis ones: applied and passive minus gravity.
        A: (nc, nv) constraint Jacobian, of any rank.
        Adot: (nc, nv) its rate.
        root: "cholesky" or "symmetric".
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.

    Raises:
        UnknownNameError: no such root; the message lists the names.
    """
    factor = root_factor(M, root)
    rows = constraint_basis(factor, A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    V1, V2 = rows.V1, free_basis(factor, rows)
    v_bar, u_bar = factor.W.T @ v, factor.divide(f)
    Gamma = coriolis_term(M, C, root)
    Gamma_o = constraint_coriolis(factor, rows, C, Adot, V2)
    v_r, u_o = V2.T @ v_bar, V1.T @ u_bar
    lam = rows.factor.pinv_transposed_times(rows.force(Gamma_o @ v_r - u_o))
    equations = QuasiTerms(
        W=factor.W,
        A_W=factor.divide(A.T).T,
        V1=V1,
        V2=V2,
        v_bar=v_bar,
        u_bar=u_bar,
        Gamma=Gamma,
        v_r=v_r,
        u_r=V2.T @ u_bar,
        Gamma_r=V2.T @ Gamma @ V2,
        v_o=V1.T @ v_bar,
        u_o=u_o,
        Gamma_o=Gamma_o,
    )
    return equations, lam


def coriolis_term(M: Sym, C: Sym, root: str = "cholesky") -> Sym:
    """Return `Γ = (W⁻¹ C - Ẇᵀ) W⁻ᵀ`, skew-symmetric  [A10, eq. 7b corrected].

    With `G = W⁻¹ C W⁻ᵀ` and `Ṁ = C + Cᵀ` a triangular root has
    `Ẇᵀ W⁻ᵀ = tril(G + Gᵀ)` with half its diagonal, so Γ has the entries of G above the diagonal
    and their negatives below: no rate of the root is needed.

    It vanishes for all v if and only if the quasi-velocities are integrable: with a C of
    Christoffel symbols Γ is the Levi-Civita connection in the orthonormal frame of this root.

    Args:
        M: (nv, nv) inertia, symmetric positive definite.
        C: (nv, nv) Coriolis matrix, `Ṁ = C + Cᵀ`.
        root: "cholesky" or "symmetric".
    """
    factor = root_factor(M, root)
    G = factor.divide(factor.divide(C).T).T
    if root == "symmetric":
        return G - factor.divide(root_rate(M, C + C.T, root)).T
    upper = ca.triu(G, False)
    return upper - upper.T


def root_rate(M: Sym, Mdot: Sym, root: str = "cholesky") -> Sym:
    """Return Ẇ, the rate of `root_factor(M, root).W`.

    For the triangular root `M = Lᵀ L`: `L̇ L⁻¹ = tril(L⁻ᵀ Ṁ L⁻¹)` with half its diagonal. For
    the symmetric one `W Ẇ + Ẇ W = Ṁ` is solved by differentiating the steps that lead to W.

    Args:
        M: (nv, nv) inertia, symmetric positive definite.
        Mdot: (nv, nv) its rate, symmetric.
        root: "cholesky" or "symmetric".

    Raises:
        UnknownNameError: no such root; the message lists the names.
    """
    require_name("root", root, ROOTS)
    if root == "symmetric":
        return _symmetric_rate(ca.densify(M), ca.densify(Mdot))
    L = tree_cholesky(M)
    both = tree_solve_transposed(L, tree_solve_transposed(L, Mdot).T)
    return ((ca.tril(both, False) + ca.diag(ca.diag(both)) / 2) @ L).T


def free_basis(factor: RootFactor[Sym], rows: ConstraintBasis[Sym]) -> Sym:
    """Return V2 (nv, nv), an orthonormal basis of null(A_W) after as many zero columns as rank.

    `V2 V2ᵀ` is smooth while the rank is constant. V2 itself jumps where the order of its pivots
    changes, and where an entry vanishes whose sign it takes: two states next to each other may
    have different bases. `free_basis_near` has no such jumps.
    """
    X = factor.divide(rows.factor.basis.V)
    return null_basis(X.T, row_scale=0.0, rank_tol=0.0)


def free_basis_near(V1: Sym, V_ref: Sym) -> Sym:
    """Return `(I - V1 V1ᵀ) V_ref` made orthonormal, the basis V2 next to a given one.

    Where `V_ref` is a basis of null(A_W) already the result is `V_ref`: a motion may take its
    present basis as the new reference at any time, and v_r goes on without a jump. Smooth until
    the free directions have turned by a right angle from those of the reference.

    Args:
        V1: (nv, k) orthonormal basis across the constraint, zero columns allowed.
        V_ref: (nv, nv) orthonormal columns, as many as there are free directions, others zero.
    """
    projected = V_ref - V1 @ (V1.T @ V_ref)
    return row_basis(projected.T, pivot=False).V


def constraint_coriolis(
    factor: RootFactor[Sym], rows: ConstraintBasis[Sym], C: Sym, Adot: Sym, V2: Sym
) -> Sym:
    """Return `Γ_o = V1ᵀ Γ V2 + V1ᵀ V̇2 = (V1ᵀ W⁻¹ C - R⁻ᵀ Vᵀ A⁺ Ȧ) W⁻ᵀ V2`  [A10, eq. 30].

    From `A_W V2 = 0`: `V1ᵀ V̇2 = -R⁻ᵀ Vᵀ A⁺ Ȧ_W V2`, with `Ȧ_W = (Ȧ - A_W Ẇᵀ) W⁻ᵀ`, whose second
    term cancels that of Γ.

    Args:
        factor: root factor of M.
        rows: the basis V1 across the constraint.
        C: (nv, nv) Coriolis matrix, `Ṁ = C + Cᵀ`.
        Adot: (nc, nv) rate of the constraint Jacobian.
        V2: (nv, nv) orthonormal basis of null(A_W), zero columns allowed.
    """
    velocities = factor.divide_transposed(V2)
    return rows.V1.T @ factor.divide(C @ velocities) + rows.rate(Adot @ velocities)


def _symmetric_rate(M: Sym, Mdot: Sym) -> Sym:
    if isinstance(M, ca.SX):
        inertia, rate = ca.SX.sym("M", *M.shape), ca.SX.sym("Mdot", *M.shape)
        derivative = ca.jtimes(matrix_root(inertia).root, inertia, rate)
        return ca.Function("root_rate", [inertia, rate], [derivative])(M, Mdot)
    f = matrix_root_fun(M.sparsity())
    W, W_inv = f.call([M])
    Wdot, _ = f.forward(1).call([M, W, W_inv, Mdot])
    return Wdot
