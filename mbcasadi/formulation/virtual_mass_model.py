"""The model of a constrained system in its own coordinates  [A16, sections 2 to 4].

`M̄ a + C̄ v = P (f - g)` for admissible v: a symmetric positive definite inertia, a Coriolis matrix
with `d/dt M̄ - 2 C̄` skew, its spectrum, and the oblique projections that give constraint and
actuator forces. The matrices are written for `A v = 0`; `virtual_mass` itself is not.
"""

from typing import Generic, NamedTuple

import casadi as ca

from mbcasadi.formulation.virtual_mass import constraint_mass, mean_mass
from mbcasadi.linalg import RANK_TOL, Sym, complete_factor, tree_cholesky, tree_solve

SQUARINGS = 40
"""Squarings for a largest eigenvalue: relative error `ln(n) / 2⁴⁰`, 4e-12 for n = 81."""


class ForceMap(NamedTuple, Generic[Sym]):
    """Actuator forces for a desired force along the constraint.

    Fields: `Gamma_u` (nu, nv), `u = Gamma_u f∥` of minimum norm; `R_ob` (nv, nv), `f = R_ob f∥`
    is then the generalised force; `complete` one where the actuators reach every motion, else
    zero.
    """

    Gamma_u: Sym
    R_ob: Sym
    complete: Sym


class InertiaRange(NamedTuple, Generic[Sym]):
    """Smallest and largest inertia of the free motions, the nonzero eigenvalues of `P M P`."""

    low: Sym
    high: Sym


def constraint_coriolis(
    M: Sym,
    C: Sym,
    P: Sym,
    Lambda: Sym,
    virtual_mass: Sym | float,
    virtual_mass_rate: Sym | float = 0.0,
) -> Sym:
    """Return `C̄ = P C P + P M (Λ P + P Λᵀ) - μ Λ P + μ̇ Q / 2`  [A16, eq. 8c, last term added].

    `d/dt M̄ - 2 C̄` is skew where `Ṁ - 2 C` is  [A16, Theorem 1]. The paper takes μ as constant.
    Where it follows the configuration, as `mean_mass` does, the last term keeps the law; it
    does not act on admissible velocities, `Q v = 0`.

    Args:
        M: (nv, nv) inertia, symmetric.
        C: (nv, nv) Coriolis matrix with `Ṁ = C + Cᵀ`.
        P: (nv, nv) projector on null(A).
        Lambda: (nv, nv) `Λ = -A⁺ Ȧ`.
        virtual_mass: μ of `M̄`.
        virtual_mass_rate: its time derivative.
    """
    turning = Lambda @ P
    Q = type(P).eye(P.shape[0]) - P
    return (
        P @ C @ P
        + P @ M @ (turning + turning.T)
        - virtual_mass * turning
        + virtual_mass_rate / 2 * Q
    )


def mean_mass_rate(M: Sym, Mdot: Sym, P: Sym, Pdot: Sym, rank: Sym | float) -> Sym:
    """Return the time derivative of `mean_mass` where the rank is locally constant.

    Args:
        M, Mdot: (nv, nv) inertia and its rate.
        P, Pdot: (nv, nv) projector on null(A) and its rate.
        rank: rank of A.
    """
    nv = M.shape[0]
    freedom = nv - rank
    moves = freedom > 0
    along = ca.sum1(ca.sum2(Pdot * M + P * Mdot))
    return ca.if_else(moves, along, ca.trace(Mdot)) / ca.if_else(moves, freedom, nv)


def largest_eigenvalue(X: Sym) -> Sym:
    """Return the largest eigenvalue of a symmetric positive semidefinite X (nv, nv).

    `trace(X^p)^{1/p}` exceeds it by the factor `nv^{1/p}` at most. X is squared `SQUARINGS`
    times and scaled to unit trace between, so nothing overflows, and there is no branch.
    """
    n = X.shape[0]
    W, log_size, weight = ca.MX.sym("W", n, n), ca.MX.sym("log_size"), ca.MX.sym("weight")
    square = W @ W
    size = ca.trace(square)
    step = ca.Function(
        "square_step",
        [W, log_size, weight],
        [square / size, log_size + weight * ca.log(size), weight / 2],
        ["W", "log_size", "weight"],
        ["W_next", "log_size_next", "weight_next"],
    )
    size_0 = ca.trace(X)
    loop = step.mapaccum("square_loop", SQUARINGS, 3)
    _, log_sizes, _ = loop(ca.densify(X / size_0), 0, 0.5)
    return size_0 * ca.exp(log_sizes[-1])


def mass_interval(M: Sym, P: Sym, rank: Sym | float) -> InertiaRange[Sym]:
    """Return `(λ_min, λ_max)` of `P M P` on null(A): the best virtual masses  [A16, eq. 12].

    With `mean_mass` as μ these are the extremes of `M̄`. Where nothing can move, both are
    `mean_mass`.
    """
    return _extremes(constraint_mass(M, P, mean_mass(M, P, rank)))


def mass_condition(M: Sym, P: Sym, virtual_mass: Sym | float) -> Sym:
    """Return `cond M̄ = max(μ, λ_max) / min(μ, λ_min)`  [A16, eq. 14].

    Least, `λ_max / λ_min`, for every μ of `mass_interval`. It is computed from `M̄` itself, so it
    holds without constraints too, where μ does not appear, and where nothing can move.
    """
    extremes = _extremes(constraint_mass(M, P, virtual_mass))
    return extremes.high / extremes.low


def _extremes(M_bar: Sym) -> InertiaRange[Sym]:
    """Return the smallest and the largest eigenvalue of a positive definite matrix."""
    inverse = tree_solve(tree_cholesky(M_bar), type(M_bar).eye(M_bar.shape[0]))
    return InertiaRange(1 / largest_eigenvalue(inverse), largest_eigenvalue(M_bar))


def force_projection(M: Sym, P: Sym, virtual_mass: Sym | float) -> Sym:
    """Return `S = I - M M̄⁻¹ P = I - M (P M P)⁺`, the same for every μ  [A16, eq. 28, App. C].

    `S² = S`, `Q S = S`, `S Q = Q`  [A16, eq. 30]: along `M null(A)` on range(Aᵀ).

    Args:
        M: (nv, nv) inertia, symmetric, positive definite on null(A).
        P: (nv, nv) projector on null(A).
        virtual_mass: μ > 0; inside `mass_interval` for the least rounding.
    """
    L = tree_cholesky(constraint_mass(M, P, virtual_mass))
    return type(M).eye(M.shape[0]) - M @ tree_solve(L, P)


def projected_force(S_ob: Sym, M: Sym, h: Sym, f: Sym, normal: Sym) -> Sym:
    """Return `f_c = -S (f - h - M Ω v)`  [A16, eq. 29].

    Args:
        S_ob: (nv, nv) `force_projection`.
        M: (nv, nv) inertia.
        h: (nv, 1) bias force, passive forces subtracted.
        f: (nv, 1) applied force.
        normal: (nv, 1) `Ω v`, generally `-A⁺ c`: the acceleration that the constraint requires.
    """
    return -S_ob @ (f - h - M @ normal)


def normal_force(S_ob: Sym, M: Sym, h: Sym, f_potent: Sym, normal: Sym) -> Sym:
    """Return `f⊥ + f_c = -S (f∥ - h) + S M Ω v`  [A16, eq. 31 corrected: `S M Ω v`].

    The sum of constraint and impotent force, for a force controller: choose f⊥, and f_c is the
    rest.

    Args:
        S_ob: (nv, nv) `force_projection`.
        M: (nv, nv) inertia.
        h: (nv, 1) bias force, passive forces subtracted.
        f_potent: (nv, 1) `P f`.
        normal: (nv, 1) acceleration that the constraint requires.
    """
    return S_ob @ (h - f_potent + M @ normal)


def actuator_map(
    B: Sym,
    P: Sym,
    rank: Sym | float,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
) -> ForceMap[Sym]:
    """Return `Γ = (P B)⁺` and `R = B Γ`  [A16, eq. 18; 19 corrected for redundant actuation].

    `R² = R`, `R P = R`, so `R Aᵀ = 0`; `P R = P` iff range(P B) = null(A)  [A16, eq. 20, 17
    corrected: null(A) inside range(B) is sufficient, not necessary]. `R` maps along range(Aᵀ),
    and only `P R x = x` on null(A)  [A16, after eq. 20, corrected].

    Args:
        B: (nv, nu) actuation, `f = B u`.
        P: (nv, nv) projector on null(A).
        rank: rank of A.
        row_scale, rank_tol: drop rule of `linalg.row_basis` for the rows of `P B`, in their
            own unit (force per control).
    """
    factor = complete_factor(P @ B, row_scale=row_scale, rank_tol=rank_tol)
    Gamma_u = factor.pinv_times(type(P).eye(P.shape[0]))
    return ForceMap(Gamma_u, B @ Gamma_u, factor.basis.rank >= P.shape[0] - rank)
