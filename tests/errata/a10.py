"""A10: quasi-velocities, statements about matrices."""

import numpy as np

from .finding import Finding
from .numerics import Array, error, pinv, skew
from .quasi import quasi


def change_of_variables() -> Finding:
    """Return the check of the steps from (8) to (11)."""
    rng = np.random.default_rng(1)
    n = 4
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    Omega, Gamma = skew(rng, n), rng.normal(size=(n, n))
    w, u = rng.normal(size=(2, n))
    wdot, Vdot = u - Gamma @ w, -Omega @ V
    bar, bardot = V.T @ w, Vdot.T @ w + V.T @ wdot
    inserted = V @ bardot + Vdot @ bar + Gamma @ V @ bar
    return Finding(
        "A10",
        "(8)-(11)",
        printed="insert `f = V f̄` and multiply by `V`",
        correct="insert `u = V ū` and multiply by `Vᵀ` from the left",
        printed_error=error(V @ inserted, V.T @ u),
        correct_error=error(V.T @ inserted, V.T @ u),
        note="the equation of motion so multiplied, against `ū = Vᵀ u`",
    )


def slope_of_reduced() -> Finding:
    """Return the check of (34)."""
    free, kept = quasi(), quasi(kept=True)
    gap = free.wr_slope - free.w_slope @ free.V2
    return Finding(
        "A10",
        "(34)",
        printed="`∂w_rᵀ/∂q = (∂wᵀ/∂q) V2`",
        correct="in the gauge `V2ᵀ dV2 = 0`, or applied to `w_r`",
        printed_error=error(gap, 0.0),
        correct_error=max(error(kept.wr_slope, kept.w_slope @ kept.V2), error(gap @ free.w_r, 0.0)),
        note=(
            "difference of the sides, for a basis `V2` that turns with q; in the gauge and "
            "applied to `w_r` (the larger)"
        ),
    )


def rotation_term() -> Finding:
    """Return the check of the last term of (35)."""
    x = quasi()
    square = x.V.T @ x.Gamma @ x.V + x.V @ x.Vdot  # the printed term needs a square basis
    inner = np.linalg.solve(x.W, x.Wdot - x.w_slope)
    return Finding(
        "A10",
        "(35)",
        printed="last term `V2 V̇2`",
        correct="`V2ᵀ V̇2`",
        printed_error=error(square, x.V.T @ (x.Gamma - x.Omega) @ x.V),
        correct_error=error(x.V2.T @ inner @ x.V2 + x.V2.T @ x.V2dot, x.Gamma_r),
        note="against (30); as printed only where `V2` is square, without constraints",
    )


def two_reduced_matrices() -> Finding:
    """Return the check that (30) and (36) are not the same matrix."""
    x = quasi()
    gap = x.Gamma_r_36 - x.Gamma_r
    return Finding(
        "A10",
        "(30), (36)",
        printed="the same matrix `Γ_r`",
        correct="the same `Γ_r w_r` only; law (39) uses `Γ_r s`: prefer (30)",
        printed_error=error(gap, 0.0),
        correct_error=error(gap @ x.w_r, 0.0),
        note="difference of the matrices; of their products with `w_r`",
    )


def left_inverse() -> Finding:
    """Return the check of the inverse in (36)."""
    x = quasi()
    left = x.V2.T @ np.linalg.inv(x.W)
    return Finding(
        "A10",
        "(36)",
        printed="`W_r⁺`, with `⁺` the Moore-Penrose inverse",
        correct="the left inverse `V2ᵀ W⁻¹`",
        printed_error=error(pinv(x.Wr) @ (x.Wrdot - x.wr_slope) @ x.w_r, x.Gamma_r @ x.w_r),
        correct_error=max(
            error(x.Gamma_r_36 @ x.w_r, x.Gamma_r @ x.w_r), error(left @ x.Wr, np.eye(3))
        ),
        note="`Γ_r w_r` against (30)",
    )


def work(Gamma: Array) -> float:
    """Return the largest `|εᵀ Γ ε|` over unit vectors, relative to ‖Γ‖."""
    sym = (Gamma + Gamma.T) / 2
    return float(np.linalg.norm(sym, 2) / np.linalg.norm(Gamma, 2))


def skew_coriolis() -> Finding:
    """Return the check that Γ does no work on any vector."""
    x = quasi()
    reduced = x.V2.T @ (x.Gamma_skew - x.Omega) @ x.V2
    return Finding(
        "A10",
        "(7b), App. B",
        printed="`Γ` and `Γ_r` skew (`εᵀ Γ_r ε = 0` for the error `ε`)",
        correct="`Γ = (W⁻¹ C - Ẇᵀ) W⁻ᵀ` with `Ṁ = C + Cᵀ` is skew and gives the same `Γ w`",
        printed_error=min(work(x.Gamma), work(x.Gamma_r)),
        correct_error=max(
            work(x.Gamma_skew),
            work(reduced),
            error(x.Gamma_skew @ x.w, x.Gamma @ x.w),
            error(reduced @ x.w_r, x.Gamma_r @ x.w_r),
        ),
        note=(
            "largest |εᵀ Γ ε| / ‖Γ‖ over unit `ε`, of Γ and of Γ_r; with the new one also ‖ΔΓ w‖"
        ),
    )


def force_norm() -> Finding:
    """Return the check of the norm at the end of §4.2."""
    x = quasi()
    u = np.linalg.solve(x.W, x.s.f)
    return Finding(
        "A10",
        "§4.2, end",
        printed="`‖u‖² = fᵀ M f`",
        correct="`‖u‖² = fᵀ M⁻¹ f`",
        printed_error=error(u @ u, x.s.f @ x.s.M @ x.s.f),
        correct_error=error(u @ u, x.s.f @ np.linalg.solve(x.s.M, x.s.f)),
        note="relative difference, `u = W⁻¹ f`",
    )
