"""A16: equations that hold as printed, evaluated."""

import numpy as np

from .a16 import LAM, M_BAR, MU, OMEGA, S_OB, S
from .family import Family
from .finding import confirmed
from .numerics import Array, error, null_basis, pinv, projector, rank, rate

EYE = np.eye(len(S.v))
FORCE = S.P @ (S.f + S.f_g)


@confirmed("A16", "(3)-(5), (32), (34)")
def rates() -> float:
    """`Q a = Ṗ v`, `Ṗ = Λ P + P Λᵀ`, `P Λ = 0`; A with a zero row and a repeated one"""
    gaps = (
        error(S.Q @ S.a - S.Pdot @ S.v, 0.0),
        error(S.Pdot, LAM @ S.P + S.P @ LAM.T),
        error(S.P @ LAM, 0.0),
        error(LAM.T @ S.P, 0.0),
    )
    return max(gaps)


@confirmed("A16", "(33)", holds=1e-06)
def regularised_inverse() -> float:
    """`A⁺ = lim Aᵀ (A Aᵀ + ε I)⁻¹`: extrapolated from ε = 1e-7 and half of it"""
    eps = 1e-7
    damped = S.A.T @ np.linalg.inv(S.A @ S.A.T + eps * np.eye(len(S.A)))
    halved = S.A.T @ np.linalg.inv(S.A @ S.A.T + eps / 2 * np.eye(len(S.A)))
    return error(2 * halved - damped, pinv(S.A))


def coriolis(M: Array, C: Array, P: Array, Lam: Array) -> Array:
    """Return `C̄` of (8c)."""
    return P @ C @ P + P @ M @ (Lam @ P + P @ Lam.T) - MU * Lam @ P


@confirmed("A16", "(6)-(8)")
def model() -> float:
    """the motion from `M̄ a + C̄ v = P (f + f_g)`"""
    C_bar = coriolis(S.M, S.C, S.P, LAM)
    gaps = (
        error(S.P @ S.M @ S.a + S.P @ S.C @ S.P @ S.v, FORCE),
        error(S.P @ S.M @ S.P @ S.a + (S.P @ S.C @ S.P + S.P @ S.M @ S.Pdot) @ S.v, FORCE),
        error(np.linalg.solve(M_BAR, FORCE - C_bar @ S.v), S.a),
    )
    return max(gaps)


@confirmed("A16", "(9), (10), Theorem 1")
def skew_property() -> float:
    """`M̄` symmetric and positive definite, `dM̄/dt - 2 C̄` skew"""
    family: Family = S.family

    def inertia(q: Array) -> Array:
        P = projector(family.A(q))
        return P @ family.M(q) @ P + MU * (np.eye(len(q)) - P)

    X = rate(inertia, S.q, S.v) - 2 * coriolis(S.M, S.C, S.P, LAM)
    x = np.linspace(-1, 1, len(EYE))
    gaps = (
        error(X, -X.T),
        max(0.0, -float(np.linalg.eigvalsh(M_BAR)[0])),
        error(x @ M_BAR @ x, (S.P @ x) @ S.M @ (S.P @ x) + MU * (S.Q @ x) @ (S.Q @ x)),
    )
    return max(gaps)


@confirmed("A16", "(12)-(14)")
def spectrum() -> float:
    """eigenvalues and condition of `M̄`; the best `μ` lies in (12)"""
    V2 = null_basis(S.A)
    inner = np.linalg.eigvalsh(V2.T @ S.M @ V2)
    expected = np.sort(np.concatenate([inner, np.full(rank(S.A), MU)]))
    cond = max(MU, inner[-1]) / min(MU, inner[0])

    def condition(mu: float) -> float:
        return float(np.linalg.cond(S.P @ S.M @ S.P + mu * S.Q))

    inside = condition(float(np.sqrt(inner[0] * inner[-1])))
    outside = min(condition(inner[0] / 1.5), condition(inner[-1] * 1.5))
    gaps = (
        error(np.linalg.eigvalsh(M_BAR), expected),
        error(np.linalg.cond(M_BAR), cond),
        max(0.0, inside - outside),
    )
    return float(max(gaps))


@confirmed("A16", "(16), (18), (20), (35), (36)")
def force_map() -> float:
    """`f = R f∥`, `P R = P`, `R P = R`, `R² = R`, with `Γ = (P B)⁺`; `u = Γ f∥` is the shortest"""
    B = np.random.default_rng(5).normal(size=(5, 4))
    Gamma = pinv(S.P @ B)
    R = B @ Gamma
    along = S.P @ S.f
    u = Gamma @ along
    longer = u + (np.eye(4) - pinv(S.P @ B) @ S.P @ B) @ np.ones(4)
    gaps = (
        error(S.P @ B @ u, along),
        error(S.P @ R @ along, along),
        error(S.P @ R, S.P),
        error(R @ S.P, R),
        error(R @ R, R),
        max(0.0, float(np.linalg.norm(u) - np.linalg.norm(longer))),
    )
    return max(gaps)


@confirmed("A16", "(26), (28)-(30), (37), (38)")
def oblique_force() -> float:
    """`M̄⁻¹P = P M̄⁻¹ = (P M P)⁺`; `S² = S`, `Q S = S`, `S Q = Q`; `f_c = -S (f + h_A16 - M Ω
    v)`, `h_A16 = f_g - C v`"""
    gaps = (
        error(np.linalg.solve(M_BAR, S.P), S.P @ np.linalg.inv(M_BAR)),
        error(S_OB @ S_OB, S_OB),
        error(S.Q @ S_OB, S_OB),
        error(S_OB @ S.Q, S.Q),
        error(-S_OB @ (S.f - S.h - S.M @ OMEGA @ S.v), S.f_c),
        error(np.linalg.solve(M_BAR, S.P), pinv(S.P @ S.M @ S.P)),
    )
    return max(gaps)


READ = "(1), (2), (11), (15), (22)-(24)"
