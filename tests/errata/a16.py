"""A16: the non-minimal model, oblique projections and control of dependent coordinates."""

import numpy as np

from .family import state, tangent_rate
from .finding import Errors, erratum
from .numerics import Array, error, null_basis, pinv, power, rank

S = state(16)  # five coordinates, four rows of rank two
LAM, OMEGA = tangent_rate(S)
MU = 3.0
M_BAR = S.P @ S.M @ S.P + MU * S.Q
S_OB = np.eye(len(S.v)) - S.M @ np.linalg.solve(M_BAR, S.P)


@erratum("A16", "below (1c)")
def power_of_inputs() -> Errors:
    """printed: `uᵀ w = fᵀ Bᵀ w`, with `w = Bᵀ v`
    holds: `uᵀ w = uᵀ Bᵀ v = fᵀ v`
    measured: difference of the powers, five inputs (with fewer, `fᵀ Bᵀ` has no meaning)"""
    rng = np.random.default_rng(1)
    B, u = rng.normal(size=(5, 5)), rng.normal(size=5)
    f, rates = B @ u, B.T @ S.v
    return error(f @ B.T @ rates, u @ rates), error(f @ S.v, u @ rates)


@erratum("A16", "after (7)")
def combination() -> Errors:
    """printed: add `μ` times (3) to (6)
    holds: to (7)
    measured: resulting inertia against (8b)"""
    return error(S.P @ S.M + MU * S.Q, M_BAR), error(S.P @ S.M @ S.P + MU * S.Q, M_BAR)


@erratum("A16", "(17)")
def enough_actuators() -> Errors:
    """printed: `range(P B) = N` or, equivalently, `N ⊆ range(B)`
    holds: the first; the second is sufficient only
    measured: ‖B B⁺ P - P‖ of a `B` that meets the first (zero if it met the second); ‖P B (P
        B)⁺ - P‖ of this one, and of one that meets the second"""
    rng = np.random.default_rng(2)
    V2 = null_basis(S.A)
    B = V2 + S.Q @ rng.normal(size=V2.shape)  # range(P B) = N, yet N is not in range(B)
    wide = np.hstack([V2 @ rng.normal(size=(3, 3)), rng.normal(size=(5, 1))])  # N in range(B)

    def keeps(X: Array) -> float:
        return error(S.P @ X @ pinv(S.P @ X), S.P)

    return error(B @ pinv(B) @ S.P, S.P), max(keeps(B), keeps(wide))


@erratum("A16", "(19)")
def redundant_actuators() -> Errors:
    """printed: `R = B (BᵀP B)⁻¹ BᵀP`
    holds: `R = B (P B)⁺`
    measured: rank that `BᵀP B` lacks, four inputs for three freedoms; ‖P R - P‖"""
    B = np.random.default_rng(3).normal(size=(5, 4))  # four inputs, three freedoms
    R = B @ pinv(S.P @ B)
    return 4 - rank(B.T @ S.P @ B), error(S.P @ R, S.P)


@erratum("A16", "after (20)")
def oblique_direction() -> Errors:
    """printed: `R` projects along null(A) and keeps every `x` there
    holds: along range(Aᵀ); on null(A) only `P R x = x`
    measured: ‖R x‖ and ‖R x - x‖ with `A x = 0` (the smaller); ‖R Aᵀy‖ and ‖P R x - x‖ (the
        larger)"""
    B = np.random.default_rng(4).normal(size=(5, 3))
    R = B @ pinv(S.P @ B)
    x = S.v
    across = S.Q @ np.ones(5)
    as_printed = min(error(R @ x, 0.0), error(R @ x, x))
    as_corrected = max(error(R @ across, 0.0), error(S.P @ R @ x, x))
    return as_printed, as_corrected


@erratum("A16", "before (27)")
def angular_rate() -> Errors:
    """printed: `Q Ω = Ω`
    holds: `Q Ω v = Ω v` where `A v = 0`
    measured: difference of the sides"""
    return error(S.Q @ OMEGA, OMEGA), error(S.Q @ OMEGA @ S.v, OMEGA @ S.v)


@erratum("A16", "(27)")
def acceleration() -> Errors:
    """printed: `M̄⁻¹ P (f + f_g + C v + M Ω v) - μ M̄⁻¹ Ω v`; second line `- Sᵀ Ω v`
    holds: `a = M̄⁻¹ P (f + f_g - C v - M Ω v) + μ M̄⁻¹ Ω v`; second line `+ Sᵀ Ω v`
    measured: against the acceleration of the KKT equations (the better line as printed, the
        worse one corrected)"""
    Cv, turn = S.C @ S.v, OMEGA @ S.v
    force = S.f + S.f_g

    def both(sign: float) -> tuple[float, float]:
        inner = S.P @ (force - sign * (Cv + S.M @ turn))
        first = np.linalg.solve(M_BAR, inner + sign * MU * turn)
        second = np.linalg.solve(M_BAR, S.P @ (force - Cv)) + sign * S_OB.T @ turn
        return error(first, S.a), error(second, S.a)

    return min(both(-1.0)), max(both(1.0))


@erratum("A16", "(31)")
def normal_force() -> Errors:
    """printed: last term `Q M Ω v`
    holds: `S M Ω v`
    measured: against `f⊥ + f_c` of the KKT equations"""
    rest = -S_OB @ (S.P @ S.f - S.h)
    bent = S.M @ OMEGA @ S.v
    true = S.Q @ S.f + S.f_c
    return error(rest + S.Q @ bent, true), error(rest + S_OB @ bent, true)


@erratum("A16", "App. C")
def inertia_rank() -> Errors:
    """printed: `rank M̄ = rank P = r`; `V2 Σ⁻¹ V2`
    holds: `rank M̄ = n`, `rank P = n - r`; `V2 Σ⁻¹ V2ᵀ`
    measured: difference of the ranks (n = 5, r = 2; the smaller); with it ‖M̄⁻¹P - V2 Σ⁻¹ V2ᵀ‖"""
    n, r, V2 = len(S.v), rank(S.A), null_basis(S.A)
    inverse = V2 @ power(V2.T @ S.M @ V2, -1.0) @ V2.T
    as_printed = min(abs(rank(M_BAR) - r), abs(rank(S.P) - r))
    as_corrected = max(
        abs(rank(M_BAR) - n),
        abs(rank(S.P) - (n - r)),
        error(np.linalg.solve(M_BAR, S.P), inverse),
        error(pinv(S.P @ S.M @ S.P), inverse),
    )
    return as_printed, as_corrected


def _rest_error(sigma: float) -> float:
    """Return `|e|` after 40 s from 1 m, unit mass on a line, `K_p = K_d = 1`.

    The law's switching term is `σ K_p |e|` against the velocity: dry friction. Each step is
    implicit in it, so that a mass which friction can hold stays where it is.
    """
    e, v, step = 1.0, 0.0, 1e-3
    for _ in range(40_000):
        free = (v - step * e) / (1 + step)
        friction = step * sigma * abs(e) / (1 + step)
        v = float(np.sign(free) * max(abs(free) - friction, 0.0))
        e += step * v
    return abs(e)


@erratum("A16", "Theorem 2", holds=1e-06)
def switching_gain() -> Errors:
    """printed: converges if `σ > 1`
    holds: it sticks: the term is dry friction, stronger than the spring; `σ < 1` converges here
    measured: |e| after 40 s, unit mass released at rest 1 m off, `K_p = K_d = 1`: `σ = 1.1` and
        `σ = 0.5`"""
    return _rest_error(1.1), _rest_error(0.5)
