"""A05: the projection formulation, statements about matrices."""

import numpy as np

from .family import kkt, state
from .finding import Errors, erratum
from .numerics import Array, error, null_basis, pinv, power, projector, rank, spd

S = state(5)  # five coordinates, four rows of rank two


@erratum("A05", "§2.1.1")
def weighted_jacobian() -> Errors:
    """printed: `A_W = A W^{1/2}`, and `A_W x_W = 0`
    holds: `A_W = A W^{-1/2}`, as in §7.2
    measured: ‖A_W x_W‖ with `x_W = W^{1/2} v`, `A v = 0`"""
    rng = np.random.default_rng(1)
    W = spd(rng, len(S.v))
    x_W = power(W, 0.5) @ S.v
    return error(S.A @ power(W, 0.5) @ x_W, 0.0), error(S.A @ power(W, -0.5) @ x_W, 0.0)


@erratum("A05", "(16)")
def projector_rate() -> Errors:
    """printed: `Ṗ v = -A⁺ Ȧ v` for every `v`
    holds: for admissible `v`, `A v = 0`
    measured: ‖Ṗ v + A⁺ Ȧ v‖ along one motion `Ṗ`, `Ȧ`; `v` with and without a part in range(Aᵀ)"""
    any_v = S.v + S.Q @ np.ones(len(S.v))
    as_printed = error(S.Pdot @ any_v, -pinv(S.A) @ S.Adot @ any_v)
    as_corrected = error(S.Pdot @ S.v, -pinv(S.A) @ S.Adot @ S.v)
    return as_printed, as_corrected


@erratum("A05", "throughout")
def drifted_motion() -> Errors:
    """printed: `Ṗ v` and `-A⁺ Ȧ v` used one for the other
    holds: on the manifold only; with drift, (22) needs `-A⁺ Ȧ v`
    measured: ‖A a + A A⁺ Ȧ v‖ of the acceleration from (22), at a velocity that has drifted off"""
    v = S.v + 0.1 * S.Q @ np.ones(len(S.v))
    M_c = S.M + S.P @ S.M - S.M @ S.P
    force = S.P @ (S.f - S.h)
    printed = np.linalg.solve(M_c, force + S.M @ S.Pdot @ v)
    correct = np.linalg.solve(M_c, force - S.M @ pinv(S.A) @ S.Adot @ v)
    as_printed = error(S.A @ printed, -S.A @ pinv(S.A) @ S.Adot @ v)
    as_corrected = error(S.A @ correct, -S.A @ pinv(S.A) @ S.Adot @ v)
    return as_printed, as_corrected


@erratum("A05", "Prop. 2")
def third_inertia() -> Errors:
    """printed: `M''_c` is invertible if `M` is
    holds: if `M` is positive definite (on null(A) is enough)
    measured: rank that `M''_c` lacks: `M = diag(1, -1)`, `A = (1, -1)`; 200 random definite `M`"""

    def defect(M: Array, A: Array) -> int:
        P = projector(A)
        return len(M) - rank(P @ M + np.eye(len(M)) - P)

    rng = np.random.default_rng(2)
    trials = [defect(spd(rng, 5), rng.normal(size=(m, 5))) for m in (1, 2, 3, 4) for _ in range(50)]
    return defect(np.diag([1.0, -1.0]), np.array([[1.0, -1.0]])), max(trials)


@erratum("A05", "§5.1.3")
def direct_dynamics() -> Errors:
    """printed: calls (22), (27), (29) inverse dynamics
    holds: they are direct dynamics
    measured: solved for `f` they give `P f` only, ‖P f - f‖; solved for `a` they give the
        motion of the KKT equations"""
    M_c = S.M + S.P @ S.M - S.M @ S.P
    forward = np.linalg.solve(M_c, S.P @ (S.f - S.h) + S.M @ S.Pdot @ S.v)
    inverse = M_c @ forward - S.M @ S.Pdot @ S.v + S.P @ S.h
    return error(inverse, S.f), error(forward, S.a)


@erratum("A05", "§5.1.3, `M'_c`")
def additional_products() -> Errors:
    """printed: three products of matrices more than `M_c`
    holds: one more: `M'_c = M - P M - (P M)ᵀ + 2 (P M) P`
    measured: products that are not needed; the form with one against `P M P + Q M Q`"""
    PM = S.P @ S.M
    in_two = S.M - PM - PM.T + 2 * PM @ S.P  # one product more than M_c = M + PM - (PM)ᵀ
    defined = S.P @ S.M @ S.P + S.Q @ S.M @ S.Q
    printed, needed = 3, 1
    return float(printed - needed), error(in_two, defined)


def _force_terms() -> tuple[Array, Array, Array, Array]:
    """Return μ, `Ṗ v`, a desired constraint force (A05's sign) and an auxiliary motion input."""
    M_c = S.M + S.P @ S.M - S.M @ S.P
    rng = np.random.default_rng(3)
    return (
        S.Q @ S.M @ np.linalg.inv(M_c),
        S.Pdot @ S.v,
        S.A.T @ rng.normal(size=len(S.A)),
        S.P @ rng.normal(size=len(S.f)),
    )


def _constraint_force(f: Array) -> Array:
    """Return A05's `F = -Aᵀ lam` under a force, from the KKT equations."""
    lam = kkt(S.M, S.A, f - S.h, S.Adot @ S.v)[1]
    return np.asarray(-S.A.T @ lam)


@erratum("A05", "(51), law after (53)")
def force_control() -> Errors:
    """printed: `μ(… + C v)`, with `C = Ṗ`
    holds: `μ(… + C_c v)`, with `C_c = M Ṗ`
    measured: ‖F - F_d‖ under each of the two laws, `F` from the KKT equations (smaller of the
        two as printed, larger of the two corrected)"""
    mu, Cv, wanted, u_p = _force_terms()
    eye = np.eye(len(mu))

    def misses(bias: Array) -> list[float]:
        along = S.P @ S.f
        law_51 = along + S.Q @ S.h + mu @ (along - S.P @ S.h + bias) + wanted
        hybrid = S.h + mu @ bias + (eye + mu) @ S.P @ S.M @ u_p + wanted
        return [error(_constraint_force(f), wanted) for f in (law_51, hybrid)]

    return min(misses(Cv)), max(misses(S.M @ Cv))


@erratum("A05", "(53)")
def smallest_singular_value() -> Errors:
    """printed: `σ_min(A)² = λ_min(AᵀA)`
    holds: `λ_min(A Aᵀ)`
    measured: relative error of σ_min, three independent rows in five coordinates"""
    A = np.random.default_rng(4).normal(size=(3, 5))
    true = np.linalg.svd(A)[1][-1]

    def root(X: Array) -> float:
        return float(np.sqrt(max(0.0, np.linalg.eigvalsh(X)[0])))

    return abs(root(A.T @ A) - true) / true, abs(root(A @ A.T) - true) / true


@erratum("A05", "(75)")
def multipliers() -> Errors:
    """printed: a term `+ ċ`; `A M⁻¹ Aᵀ` called the Cartesian inertia
    holds: drop the term; `A M⁻¹ Aᵀ` is the inverse of that inertia
    measured: ‖A a + Ȧ v‖ with any `ċ ≠ 0` and without (and for a point mass `A M⁻¹ Aᵀ = I/m`)"""
    rng = np.random.default_rng(6)
    A, mass = S.family.rows(S.q), 2.5
    G = A @ np.linalg.solve(S.M, A.T)
    Adot_v = -A @ S.a  # of the independent rows: A a + Ȧ v = 0

    def gap(extra: Array) -> float:
        lam = np.linalg.solve(G, A @ np.linalg.solve(S.M, S.f - S.h) + Adot_v + extra)
        a = np.linalg.solve(S.M, S.f - S.h - A.T @ lam)
        return error(A @ a, -Adot_v)

    unit_rows = null_basis(S.A).T
    point = unit_rows @ (unit_rows.T / mass)
    return gap(rng.normal(size=2)), max(gap(np.zeros(2)), error(point * mass, np.eye(len(point))))
