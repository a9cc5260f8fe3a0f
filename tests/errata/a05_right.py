"""A05: equations that hold as printed, evaluated."""

import numpy as np

from .family import aligned_basis, kkt, state
from .finding import confirmed
from .numerics import error, null_basis, pinv, power, projector, rate, spd

S = state(5)
EYE = np.eye(len(S.v))
MATCHED = S.P @ (S.f - S.h)  # force left to move the system


@confirmed("A05", "(4), (15)")
def projectors() -> float:
    """`P = V2 V2ᵀ = I - A⁺A = Pᵀ = P²`, `A P = 0`"""
    V2 = null_basis(S.A)
    P = EYE - pinv(S.A) @ S.A
    gaps = (error(V2 @ V2.T, P), error(P @ P, P), error(P.T, P), error(S.A @ P, 0.0))
    return max(gaps)


@confirmed("A05", "(12)-(14)")
def acceleration_parts() -> float:
    """`Q v = 0`, `Q a = Ṗ v`, `Ṗ = S + Sᵀ` with `S = V̇2 V2ᵀ`"""
    Z = null_basis(S.A)
    S_rate = rate(lambda q: aligned_basis(S.family.A(q), Z), S.q, S.v) @ Z.T
    gaps = (
        error(S.Q @ S.v, 0.0),
        error(S.Q @ S.a, S.Pdot @ S.v),
        error(S.Pdot, S_rate + S_rate.T),
    )
    return max(gaps)


@confirmed("A05", "(19)-(21), (26)")
def projected_dynamics() -> float:
    """KKT, `P M a = P (f - h)`, `P M P a = P (f - h) - P C_c v`"""
    gaps = (
        error(S.M @ S.a + S.h, S.f + S.f_c),
        error(S.P @ S.M @ S.a, MATCHED),
        error(S.P @ S.M @ S.P @ S.a, MATCHED - S.P @ S.M @ S.Pdot @ S.v),
    )
    return max(gaps)


@confirmed("A05", "(22)-(25), (27)-(29)")
def constraint_inertias() -> float:
    """the motion from `M_c`, `M'_c` (with `C'_c = (I - 2P) C_c`), `M''_c`; `xᵀ M_c x = xᵀ M x`;
    `M'_c` symmetric and positive definite"""
    Cv = S.Pdot @ S.v
    M_c = S.M + S.P @ S.M - S.M @ S.P
    M_prime = S.P @ S.M @ S.P + S.Q @ S.M @ S.Q
    reflected = (EYE - 2 * S.P) @ S.M @ Cv
    gamma = np.linalg.norm(S.M, 2)
    M_second = S.P @ S.M + gamma * S.Q
    x = np.linspace(-1, 1, len(EYE))
    gaps = (
        error(np.linalg.solve(M_c, MATCHED + S.M @ Cv), S.a),
        error(np.linalg.solve(M_prime, MATCHED + reflected), S.a),
        error(np.linalg.solve(M_second, MATCHED + gamma * Cv), S.a),
        error(x @ M_c @ x, x @ S.M @ x),
        error(M_prime, M_prime.T),
        max(0.0, -float(np.linalg.eigvalsh(M_prime)[0])),
    )
    return max(gaps)


@confirmed("A05", "(30), (31)")
def singular_inertia() -> float:
    """a null vector of `M''_c` gives `P M ξ = 0`, `Q ξ = 0`, `ξᵀ M ξ = 0`"""
    M, A = np.diag([1.0, -1.0]), np.array([[1.0, -1.0]])
    P = projector(A)
    xi = np.linalg.svd(P @ M + np.eye(2) - P)[2][-1]
    gaps = (error(P @ M @ xi, 0.0), error(xi - P @ xi, 0.0), abs(xi @ M @ xi))
    return float(max(gaps))


@confirmed("A05", "(32), (76)")
def constraint_force() -> float:
    """`F` against `-Aᵀ lam` of the KKT equations; `μ P = 0` where `M` keeps null(A)"""
    M_c = S.M + S.P @ S.M - S.M @ S.P
    mu = S.Q @ S.M @ np.linalg.inv(M_c)
    force = S.Q @ (S.f - S.h) - mu @ MATCHED - mu @ S.M @ S.Pdot @ S.v
    M = 2.0 * S.P + 3.0 * S.Q + S.P @ S.M @ S.P  # keeps null(A)
    apart = S.Q @ M @ np.linalg.inv(M + S.P @ M - M @ S.P) @ S.P
    return max(error(force, -S.f_c), error(apart, 0.0))


@confirmed("A05", "(44)-(48)")
def motion_control() -> float:
    """`f∥ = h∥ + P M u_p` gives the required acceleration; any other force that does is longer"""
    rng = np.random.default_rng(7)
    Lam = null_basis(S.A) @ spd(rng, 3)
    # An admissible motion with q̇ = Λ θ̇ has a = Λ θ̈ + Λ̇ θ̇; only the sum enters.
    bent = S.Pdot @ S.v
    target = rng.normal(size=3)
    u_p = bent + Lam @ target
    f = S.P @ S.h + S.P @ S.M @ u_p
    a = kkt(S.M, S.A, f - S.h, S.Adot @ S.v)[0]
    other = f + S.Q @ rng.normal(size=len(f))
    gaps = (
        error(a, u_p),
        max(0.0, float(np.linalg.norm(f) - np.linalg.norm(other))),
        error(kkt(S.M, S.A, other - S.h, S.Adot @ S.v)[0], a),
    )
    return max(gaps)


@confirmed("A05", "(49), (50)")
def weighted_norm() -> float:
    """`‖f_W‖² = fᵀ W⁻¹ f`; the motion does not depend on the metric"""
    rng = np.random.default_rng(8)
    W = spd(rng, len(S.v))
    root = power(W, -0.5)
    f_W = root @ S.f
    a_W = kkt(root @ S.M @ root, S.A @ root, root @ (S.f - S.h), S.Adot @ S.v)[0]
    kappa = 0.3
    split = kappa**2 * (S.f[:2] @ S.f[:2]) + S.f[2:] @ S.f[2:]
    diagonal = np.diag([kappa**2] * 2 + [1.0] * (len(S.f) - 2))
    gaps = (
        error(f_W @ f_W, S.f @ np.linalg.solve(W, S.f)),
        error(root @ a_W, S.a),
        error(split, S.f @ diagonal @ S.f),
    )
    return max(gaps)


@confirmed("A05", "(74)")
def lagrange_acceleration() -> float:
    """`a = M⁻¹ (f - h - Aᵀλ)`, `λ = -lam`"""
    a = np.linalg.solve(S.M, S.f - S.h - S.A.T @ -S.lam)
    return error(a, S.a)


READ = "(1)-(3), (5)-(11), (17), (18), (38), (40)-(43), (55), (56), (72)"
