"""A16: the non-minimal model, oblique projections and control of dependent coordinates."""

import numpy as np

from .family import state, tangent_rate
from .finding import Finding
from .numerics import Array, error, null_basis, pinv, power, rank

S = state(16)  # five coordinates, four rows of rank two
LAM, OMEGA = tangent_rate(S)
MU = 3.0
M_BAR = S.P @ S.M @ S.P + MU * S.Q
S_OB = np.eye(len(S.v)) - S.M @ np.linalg.solve(M_BAR, S.P)


def power_of_inputs() -> Finding:
    """Return the check of the power below (1c)."""
    rng = np.random.default_rng(1)
    B, u = rng.normal(size=(5, 5)), rng.normal(size=5)
    f, rates = B @ u, B.T @ S.v
    return Finding(
        "A16",
        "below (1c)",
        printed="`uᵀ w = fᵀ Bᵀ w`, with `w = Bᵀ v`",
        correct="`uᵀ w = uᵀ Bᵀ v = fᵀ v`",
        printed_error=error(f @ B.T @ rates, u @ rates),
        correct_error=error(f @ S.v, u @ rates),
        note="difference of the powers, five inputs (with fewer, `fᵀ Bᵀ` has no meaning)",
    )


def combination() -> Finding:
    """Return the check of the step from (7) to (8)."""
    return Finding(
        "A16",
        "after (7)",
        printed="add `μ` times (3) to (6)",
        correct="to (7)",
        printed_error=error(S.P @ S.M + MU * S.Q, M_BAR),
        correct_error=error(S.P @ S.M @ S.P + MU * S.Q, M_BAR),
        note="resulting inertia against (8b)",
    )


def enough_actuators() -> Finding:
    """Return the check of (17): the condition for a solution."""
    rng = np.random.default_rng(2)
    V2 = null_basis(S.A)
    B = V2 + S.Q @ rng.normal(size=V2.shape)  # range(P B) = N, yet N is not in range(B)
    wide = np.hstack([V2 @ rng.normal(size=(3, 3)), rng.normal(size=(5, 1))])  # N in range(B)

    def keeps(X: Array) -> float:
        return error(S.P @ X @ pinv(S.P @ X), S.P)

    return Finding(
        "A16",
        "(17)",
        printed="`range(P B) = N` or, equivalently, `N ⊆ range(B)`",
        correct="the first; the second is sufficient only",
        printed_error=error(B @ pinv(B) @ S.P, S.P),
        correct_error=max(keeps(B), keeps(wide)),
        note=(
            "‖B B⁺ P - P‖ of a `B` that meets the first (zero if it met the second); ‖P B (P B)⁺ "
            "- P‖ of this one, and of one that meets the second"
        ),
    )


def redundant_actuators() -> Finding:
    """Return the check of (19): the force map of redundant actuators."""
    B = np.random.default_rng(3).normal(size=(5, 4))  # four inputs, three freedoms
    R = B @ pinv(S.P @ B)
    return Finding(
        "A16",
        "(19)",
        printed="`R = B (BᵀP B)⁻¹ BᵀP`",
        correct="`R = B (P B)⁺`",
        printed_error=4 - rank(B.T @ S.P @ B),
        correct_error=error(S.P @ R, S.P),
        note="rank that `BᵀP B` lacks, four inputs for three freedoms; ‖P R - P‖",
    )


def oblique_direction() -> Finding:
    """Return the check of what R keeps, and along what it projects."""
    B = np.random.default_rng(4).normal(size=(5, 3))
    R = B @ pinv(S.P @ B)
    x = S.v
    across = S.Q @ np.ones(5)
    return Finding(
        "A16",
        "after (20)",
        printed="`R` projects along null(A) and keeps every `x` there",
        correct="along range(Aᵀ); on null(A) only `P R x = x`",
        printed_error=min(error(R @ x, 0.0), error(R @ x, x)),
        correct_error=max(error(R @ across, 0.0), error(S.P @ R @ x, x)),
        note=(
            "‖R x‖ and ‖R x - x‖ with `A x = 0` (the smaller); ‖R Aᵀy‖ and ‖P R x - x‖ (the larger)"
        ),
    )


def angular_rate() -> Finding:
    """Return the check of the identity before (27)."""
    return Finding(
        "A16",
        "before (27)",
        printed="`Q Ω = Ω`",
        correct="`Q Ω v = Ω v` where `A v = 0`",
        printed_error=error(S.Q @ OMEGA, OMEGA),
        correct_error=error(S.Q @ OMEGA @ S.v, OMEGA @ S.v),
        note="difference of the sides",
    )


def acceleration() -> Finding:
    """Return the check of (27): the acceleration."""
    Cv, turn = S.C @ S.v, OMEGA @ S.v
    force = S.f + S.f_g

    def both(sign: float) -> tuple[float, float]:
        inner = S.P @ (force - sign * (Cv + S.M @ turn))
        first = np.linalg.solve(M_BAR, inner + sign * MU * turn)
        second = np.linalg.solve(M_BAR, S.P @ (force - Cv)) + sign * S_OB.T @ turn
        return error(first, S.a), error(second, S.a)

    return Finding(
        "A16",
        "(27)",
        printed="`M̄⁻¹ P (f + f_g + C v + M Ω v) - μ M̄⁻¹ Ω v`; second line `- Sᵀ Ω v`",
        correct="`a = M̄⁻¹ P (f + f_g - C v - M Ω v) + μ M̄⁻¹ Ω v`; second line `+ Sᵀ Ω v`",
        printed_error=min(both(-1.0)),
        correct_error=max(both(1.0)),
        note=(
            "against the acceleration of the KKT equations (the better line as printed, the "
            "worse one corrected)"
        ),
    )


def normal_force() -> Finding:
    """Return the check of (31): the normal force."""
    rest = -S_OB @ (S.P @ S.f - S.h)
    bent = S.M @ OMEGA @ S.v
    true = S.Q @ S.f + S.f_c
    return Finding(
        "A16",
        "(31)",
        printed="last term `Q M Ω v`",
        correct="`S M Ω v`",
        printed_error=error(rest + S.Q @ bent, true),
        correct_error=error(rest + S_OB @ bent, true),
        note="against `f⊥ + f_c` of the KKT equations",
    )


def inertia_rank() -> Finding:
    """Return the check of Appendix C: ranks and the inverse."""
    n, r, V2 = len(S.v), rank(S.A), null_basis(S.A)
    inverse = V2 @ power(V2.T @ S.M @ V2, -1.0) @ V2.T
    return Finding(
        "A16",
        "App. C",
        printed="`rank M̄ = rank P = r`; `V2 Σ⁻¹ V2`",
        correct="`rank M̄ = n`, `rank P = n - r`; `V2 Σ⁻¹ V2ᵀ`",
        printed_error=min(abs(rank(M_BAR) - r), abs(rank(S.P) - r)),
        correct_error=max(
            abs(rank(M_BAR) - n),
            abs(rank(S.P) - (n - r)),
            error(np.linalg.solve(M_BAR, S.P), inverse),
            error(pinv(S.P @ S.M @ S.P), inverse),
        ),
        note="difference of the ranks (n = 5, r = 2; the smaller); with it ‖M̄⁻¹P - V2 Σ⁻¹ V2ᵀ‖",
    )


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


def switching_gain() -> Finding:
    """Return the check of Theorem 2: convergence of the dependent coordinates."""
    return Finding(
        "A16",
        "Theorem 2",
        printed="converges if `σ > 1`",
        correct=(
            "it sticks: the term is dry friction, stronger than the spring; `σ < 1` converges here"
        ),
        printed_error=_rest_error(1.1),
        correct_error=_rest_error(0.5),
        note=(
            "|e| after 40 s, unit mass released at rest 1 m off, `K_p = K_d = 1`: `σ = 1.1` and "
            "`σ = 0.5`"
        ),
        holds=1e-06,
    )
