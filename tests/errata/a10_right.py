"""A10: equations that hold as printed, evaluated. A10's multipliers are `λ = -lam`."""

import numpy as np

from .family import kkt
from .finding import confirmed
from .numerics import error, partials, pinv, rate
from .quasi import quasi

X = quasi()
S = X.s
A_W = np.linalg.solve(X.W, S.A.T).T
INPUT = np.linalg.solve(X.W, S.f + S.f_g)  # u; A10 counts gravity among the forces
WDOT_V = X.W.T @ S.a + X.Wdot.T @ S.v  # rate of the quasi-velocity along the motion
WR_RATE = X.Wr.T @ S.a + X.Wrdot.T @ S.v


@confirmed("A10", "(1), (4)-(7)")
def free_motion() -> float:
    """Lagrange's equations as `ẇ + Γ w = u`, without constraints"""
    force = S.f + S.f_g
    a = np.linalg.solve(S.M, force - S.C @ S.v)
    wdot = X.W.T @ a + X.Wdot.T @ S.v
    kinetic = partials(lambda q: np.array(S.v @ S.family.M(q) @ S.v / 2), S.q)
    lagrange = S.M @ a + S.Mdot @ S.v - kinetic
    gaps = (
        error(lagrange, force),
        error(X.W @ wdot + (X.Wdot - X.w_slope) @ X.w, force),
        error(2 * kinetic, 2 * X.w_slope @ X.w),
        error(wdot + X.Gamma @ X.w, INPUT),
    )
    return max(gaps)


@confirmed("A10", "(10), (11)")
def rotated() -> float:
    """`Γ̄ = Vᵀ (Γ - Ω) V`, `Ω` skew"""
    bardot = X.Vdot.T @ X.w + X.V.T @ WDOT_V
    turned = X.V.T @ (X.Gamma - X.Omega) @ X.V
    u = INPUT + A_W.T @ S.lam
    gaps = (error(bardot + turned @ X.V.T @ X.w, X.V.T @ u), error(X.Omega, -X.Omega.T))
    return max(gaps)


@confirmed("A10", "(13), Remark 2")
def no_work() -> float:
    """`wᵀ Γ w = 0`, `w_rᵀ Γ_r w_r = 0`"""
    gaps = (abs(X.w @ X.Gamma @ X.w), abs(X.w_r @ X.Gamma_r @ X.w_r))
    return max(gaps)


@confirmed("A10", "(14)")
def entries() -> float:
    """entries of `W Γ`"""
    slopes = partials(lambda q: np.linalg.cholesky(S.family.M(q)), S.q)
    R = np.einsum("ijk,k->ij", slopes, S.v) - np.einsum("kji,k->ij", slopes, S.v)
    return error(R, X.W @ X.Gamma)


@confirmed("A10", "(18)-(33)")
def constrained_motion() -> float:
    """`ẇ_r + Γ_r w_r = u_r`, `A_rᵀ λ + Γ_o w_r = u_o`, and the shortest `λ`, against the KKT
    equations"""
    r = np.linalg.matrix_rank(A_W, tol=1e-9)
    U, sigma, Vt = np.linalg.svd(A_W)
    U1, V1 = U[:, :r], Vt[:r].T
    turn_1 = rate(
        lambda q: np.linalg.solve(np.linalg.cholesky(S.family.M(q)), S.family.A(q).T).T, S.q, S.v
    )
    u_o, u_r = V1.T @ INPUT, X.V2.T @ INPUT
    # V1ᵀ Ω V2 = V1ᵀ V̇2 up to sign, from A_W V2 = 0.
    bent = -pinv(A_W) @ turn_1 @ X.V2
    Gamma_o = V1.T @ (X.Gamma @ X.V2 + bent)
    lam = U1 @ np.diag(1 / sigma[:r]) @ (u_o - Gamma_o @ X.w_r)
    gaps = (
        error(WDOT_V + X.Gamma @ X.w, INPUT + A_W.T @ S.lam),
        error(A_W @ X.w, 0.0),
        error(A_W @ np.hstack([V1, X.V2]), np.hstack([U1 * sigma[:r], np.zeros((4, 3))])),
        error(X.V.T @ X.w, np.concatenate([np.zeros(r), X.w_r])),
        error(np.linalg.solve(X.W.T, X.V2 @ X.w_r), S.v),
        error(WR_RATE + X.Gamma_r @ X.w_r, u_r),
        error((U1 * sigma[:r]).T @ -S.lam + Gamma_o @ X.w_r, u_o),
        error(lam, -S.lam),
    )
    return max(gaps)


@confirmed("A10", "(37)")
def independent_coordinates() -> float:
    """`dθ/dt = B w_r`, and back"""
    slope = np.random.default_rng(3).normal(size=(3, 5))  # ∂θ/∂q
    B = slope @ np.linalg.solve(X.W.T, X.V2)
    gaps = (error(B @ X.w_r, slope @ S.v), error(np.linalg.solve(B, slope @ S.v), X.w_r))
    return max(gaps)


@confirmed("A10", "(39), (40)")
def tracking_law() -> float:
    """`dε/dt = -(Γ_r + K_d) ε`"""
    rng = np.random.default_rng(4)
    K = np.diag([1.0, 2.0, 3.0])
    s, sdot = rng.normal(size=(2, 3))
    eps = X.w_r - s
    u_r = sdot + X.Gamma_r @ s - K @ eps
    epsdot = u_r - X.Gamma_r @ X.w_r - sdot
    return error(epsdot, -(X.Gamma_r + K) @ eps)


@confirmed("A10", "(47)")
def force_law() -> float:
    """`λ = λ_d` under the force law"""
    rows = S.family.rows(S.q)
    wanted = np.array([50.0, -20.0])  # λ_d of two independent rows
    A = np.linalg.solve(X.W, rows.T).T
    V1 = X.V[:, :2]
    Gamma_o = V1.T @ (X.Gamma - X.Omega) @ X.V2
    u = V1 @ (V1.T @ A.T @ wanted + Gamma_o @ X.w_r) + X.V2 @ np.ones(3)
    lam = kkt(S.M, rows, X.W @ u - S.C @ S.v, -rows @ S.a)[1]
    return error(-lam, wanted)


READ = "(2), (3), (12), (15)-(17), (43), (46), (48)-(51)"
