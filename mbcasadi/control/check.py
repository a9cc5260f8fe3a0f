"""The solution testifies for itself: residuals on the original data.

Whatever solver ran, its answer counts only if these five numbers are small:

    dynamics         |M a - f - B p - Gᵀ lam| / (1 + |f| + |p|)
    constraint       |G a + c| on kept rows / (1 + |a|)
    primal           violation of the inequalities / (1 + |lam| + |p|)
    stationarity     |L⁻ᵀ (∇ cost + Aᵀ mu)| / (1 + |x| + |x_0|)
    complementarity  Σ |mu_i gap_i| / (1 + |x|² + |x_0|²)

`x` is the whitened unknown of `least_distance.py`, in which the cost is `½ |x|²`: stationarity
there bounds the distance to the optimum. NaN makes a residual NaN, and NaN is not `<= tol`.
"""

from dataclasses import dataclass

import casadi as ca

from mbcasadi.control.condense import Condensed, Dynamics, multipliers, solve_upper_transposed
from mbcasadi.control.least_distance import Whitened
from mbcasadi.control.rows import Rows

RESIDUALS = ("dynamics", "constraint", "primal", "stationarity", "complementarity")


@dataclass(frozen=True)
class Cost:
    """What is minimised, in the terms of `problem.py`.

    Attributes:
        J, offset, weight: tasks.
        p_ref: reference of the actuator forces.
        of_lam, of_w: contact forces.
        torque_weight, internal_force_weight, force_weight: regularisation.
        first: number of multipliers above those of the contacts.
    """

    J: ca.SX
    offset: ca.SX
    weight: ca.DM
    p_ref: ca.SX
    of_lam: ca.SX
    of_w: ca.SX
    torque_weight: float
    internal_force_weight: float
    force_weight: float


@dataclass(frozen=True)
class Answer:
    """A candidate: actuator forces, internal forces, multipliers of the rows, whitened unknown."""

    p: ca.SX
    w: ca.SX
    mu: ca.SX
    x: ca.SX


@dataclass(frozen=True)
class Verdict:
    """The candidate's accelerations and multipliers, and its residuals (5,)."""

    a: ca.SX
    lam: ca.SX
    residual: ca.SX


def examine(
    answer: Answer,
    dynamics: Dynamics,
    condensed: Condensed,
    whitened: Whitened,
    rows: Rows,
    cost: Cost,
) -> Verdict:
    """Return the residuals of a candidate."""
    p, w, mu = answer.p, answer.w, answer.mu
    M, f, B, G, c = dynamics
    a = condensed.T @ p + condensed.t
    lam = multipliers(condensed, p)
    size_p, size_lam = _length(p), _length(lam)
    size_x = _length(answer.x)
    far = whitened.distance
    dynamics_gap = _length(M @ a - f - B @ p - G.T @ lam) / (1 + _length(f) + size_p)
    constraint_gap = _length(condensed.kept * (G @ a + c)) / (1 + _length(a))
    value = rows.value(p, lam, w)
    above, below = value - rows.upper, rows.lower - value
    primal = _length(positive(above) + positive(below)) / (1 + size_lam + size_p)
    gradient = gradient_of(answer, (a, lam), condensed, rows, cost)
    stationarity = _length(whitened.L_inv.T @ gradient) / (1 + size_x + far)
    gaps = ca.fabs(positive(mu) * above) + ca.fabs(positive(-mu) * below)
    complementarity = ca.sum1(gaps) / (1 + size_x**2 + far**2)
    residual = ca.vertcat(dynamics_gap, constraint_gap, primal, stationarity, complementarity)
    return Verdict(a, lam, residual)


def gradient_of(
    answer: Answer, motion: tuple[ca.SX, ca.SX], condensed: Condensed, rows: Rows, cost: Cost
) -> ca.SX:
    """Return the derivative of the Lagrangian by y = (p, w), from the tasks themselves.

    `Tᵀ Jᵀ W (J a + offset) + r_p (p - p_ref) + (∂lam/∂p)ᵀ (C_lamᵀ mu) + C_pᵀ mu`.
    """
    a, lam = motion
    p, w, mu = answer.p, answer.w, answer.mu
    misses = cost.weight * (cost.J @ a + cost.offset)
    by_lam, by_w = rows.C_lam.T @ mu, rows.C_w.T @ mu + cost.internal_force_weight * w
    if cost.force_weight:
        first = lam.numel() - cost.of_lam.shape[1]
        force = cost.of_lam @ lam[first:, 0] + cost.of_w @ w
        felt = ca.vertcat(ca.SX(first, 1), cost.of_lam.T @ force)
        by_lam = by_lam + cost.force_weight * felt
        by_w = by_w + cost.force_weight * (cost.of_w.T @ force)
    through = solve_upper_transposed(condensed.R, condensed.R_inv_diag, ca.densify(by_lam))
    by_p = condensed.T.T @ (cost.J.T @ misses) + cost.torque_weight * (p - cost.p_ref)
    by_p = by_p + rows.C_p.T @ mu - condensed.Y_B.T @ through
    return ca.vertcat(by_p, by_w)


def positive(value: ca.SX) -> ca.SX:
    """Return `max(value, 0)`; NaN stays NaN, which `fmax` would hide."""
    return (value + ca.fabs(value)) / 2


def _length(value: ca.SX) -> ca.SX:
    return ca.sqrt(ca.sumsqr(ca.densify(value)))
