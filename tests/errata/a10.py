"""A10: quasi-velocities, statements about matrices."""

import numpy as np

from .finding import Errors, erratum
from .numerics import Array, error, pinv, skew
from .quasi import quasi


@erratum("A10", "(8)-(11)")
def change_of_variables() -> Errors:
    """printed: insert `f = V f̄` and multiply by `V`
    holds: insert `u = V ū` and multiply by `Vᵀ` from the left
    measured: the equation of motion so multiplied, against `ū = Vᵀ u`"""
    rng = np.random.default_rng(1)
    n = 4
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    Omega, Gamma = skew(rng, n), rng.normal(size=(n, n))
    w, u = rng.normal(size=(2, n))
    wdot, Vdot = u - Gamma @ w, -Omega @ V
    bar, bardot = V.T @ w, Vdot.T @ w + V.T @ wdot
    inserted = V @ bardot + Vdot @ bar + Gamma @ V @ bar
    return error(V @ inserted, V.T @ u), error(V.T @ inserted, V.T @ u)


@erratum("A10", "(34)")
def slope_of_reduced() -> Errors:
    """printed: `∂w_rᵀ/∂q = (∂wᵀ/∂q) V2`
    holds: in the gauge `V2ᵀ dV2 = 0`, or applied to `w_r`
    measured: difference of the sides, for a basis `V2` that turns with q; in the gauge and
        applied to `w_r` (the larger)"""
    free, kept = quasi(), quasi(kept=True)
    gap = free.wr_slope - free.w_slope @ free.V2
    as_printed = error(gap, 0.0)
    as_corrected = max(error(kept.wr_slope, kept.w_slope @ kept.V2), error(gap @ free.w_r, 0.0))
    return as_printed, as_corrected


@erratum("A10", "(35)")
def rotation_term() -> Errors:
    """printed: last term `V2 V̇2`
    holds: `V2ᵀ V̇2`
    measured: against (30); as printed only where `V2` is square, without constraints"""
    x = quasi()
    square = x.V.T @ x.Gamma @ x.V + x.V @ x.Vdot  # the printed term needs a square basis
    inner = np.linalg.solve(x.W, x.Wdot - x.w_slope)
    as_printed = error(square, x.V.T @ (x.Gamma - x.Omega) @ x.V)
    as_corrected = error(x.V2.T @ inner @ x.V2 + x.V2.T @ x.V2dot, x.Gamma_r)
    return as_printed, as_corrected


@erratum("A10", "(30), (36)")
def two_reduced_matrices() -> Errors:
    """printed: the same matrix `Γ_r`
    holds: the same `Γ_r w_r` only; law (39) uses `Γ_r s`: prefer (30)
    measured: difference of the matrices; of their products with `w_r`"""
    x = quasi()
    gap = x.Gamma_r_36 - x.Gamma_r
    return error(gap, 0.0), error(gap @ x.w_r, 0.0)


@erratum("A10", "(36)")
def left_inverse() -> Errors:
    """printed: `W_r⁺`, with `⁺` the Moore-Penrose inverse
    holds: the left inverse `V2ᵀ W⁻¹`
    measured: `Γ_r w_r` against (30)"""
    x = quasi()
    left = x.V2.T @ np.linalg.inv(x.W)
    as_printed = error(pinv(x.Wr) @ (x.Wrdot - x.wr_slope) @ x.w_r, x.Gamma_r @ x.w_r)
    as_corrected = max(
        error(x.Gamma_r_36 @ x.w_r, x.Gamma_r @ x.w_r), error(left @ x.Wr, np.eye(3))
    )
    return as_printed, as_corrected


def work(Gamma: Array) -> float:
    """Return the largest `|εᵀ Γ ε|` over unit vectors, relative to ‖Γ‖."""
    sym = (Gamma + Gamma.T) / 2
    return float(np.linalg.norm(sym, 2) / np.linalg.norm(Gamma, 2))


@erratum("A10", "(7b), App. B")
def skew_coriolis() -> Errors:
    """printed: `Γ` and `Γ_r` skew (`εᵀ Γ_r ε = 0` for the error `ε`)
    holds: `Γ = (W⁻¹ C - Ẇᵀ) W⁻ᵀ` with `Ṁ = C + Cᵀ` is skew and gives the same `Γ w`
    measured: largest |εᵀ Γ ε| / ‖Γ‖ over unit `ε`, of Γ and of Γ_r; with the new one also ‖ΔΓ
        w‖"""
    x = quasi()
    reduced = x.V2.T @ (x.Gamma_skew - x.Omega) @ x.V2
    as_printed = min(work(x.Gamma), work(x.Gamma_r))
    as_corrected = max(
        work(x.Gamma_skew),
        work(reduced),
        error(x.Gamma_skew @ x.w, x.Gamma @ x.w),
        error(reduced @ x.w_r, x.Gamma_r @ x.w_r),
    )
    return as_printed, as_corrected


@erratum("A10", "§4.2, end")
def force_norm() -> Errors:
    """printed: `‖u‖² = fᵀ M f`
    holds: `‖u‖² = fᵀ M⁻¹ f`
    measured: relative difference, `u = W⁻¹ f`"""
    x = quasi()
    u = np.linalg.solve(x.W, x.s.f)
    return error(u @ u, x.s.f @ x.s.M @ x.s.f), error(u @ u, x.s.f @ np.linalg.solve(x.s.M, x.s.f))
