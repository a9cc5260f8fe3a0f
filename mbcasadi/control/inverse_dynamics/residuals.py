"""Residuals of a candidate solution on the original equations.

Whatever solver ran, its solution is accepted only if these five numbers are small:

    dynamics         |M a - f - B p - Gᵀ lam| / (1 + |f| + |p|)
    constraint       |G a + c| on kept rows / (1 + |a|)
    primal           violation of the inequalities / (1 + |lam| + |p|)
    stationarity     |L⁻ᵀ (∇ cost + Aᵀ mu)| / (1 + |x| + |x_0|)
    complementarity  Σ |mu_i gap_i| / (1 + |x|² + |x_0|²)

`x` is the whitened unknown of `qp/whitening.py`, in which the cost is `½ |x|²`: stationarity
there bounds the distance to the optimum. NaN makes a residual NaN, and NaN is not `<= tol`.
"""

from dataclasses import dataclass

import casadi as ca

from mbcasadi.control.inverse_dynamics.condensed_dynamics import (
    Condensed,
    Dynamics,
    multipliers,
    solve_upper_transposed,
)
from mbcasadi.control.inverse_dynamics.inequalities import Rows
from mbcasadi.qp.kkt_residuals import QP_RESIDUALS, length, positive
from mbcasadi.qp.whitening import Whitened

RESIDUALS = ("dynamics", "constraint", *QP_RESIDUALS)


@dataclass(frozen=True)
class Cost:
    """What is minimised, in the terms of `problem.py`.

    Attributes:
        J, offset, weight: (k, nv), (k,), (k,) of the tasks, `½ |J a + offset|²_W`.
        p_ref: (np,) reference of the actuator forces.
        of_lam, of_w: (3 nc, ·), (3 nc, nw) contact forces `of_lam lam + of_w w`; lam are the
            multipliers of the contact rows, the last ones.
        f_ref: (3 nc,) reference of the contact forces.
        torque_weight, internal_force_weight, force_weight: r_p, r_w, r_f of the regularisation.
    """

    J: ca.SX
    offset: ca.SX
    weight: ca.DM
    p_ref: ca.SX
    of_lam: ca.SX
    of_w: ca.SX
    f_ref: ca.SX
    torque_weight: float
    internal_force_weight: float
    force_weight: float


@dataclass(frozen=True)
class Candidate:
    """A candidate: actuator forces, internal forces, multipliers of the rows, whitened unknown."""

    p: ca.SX
    w: ca.SX
    mu: ca.SX
    x: ca.SX


def residuals(
    candidate: Candidate,
    dynamics: Dynamics,
    condensed: Condensed,
    whitened: Whitened,
    rows: Rows,
    cost: Cost,
) -> ca.SX:
    """Return the residuals (5,) of a candidate, in the order of `RESIDUALS`.

    Args:
        candidate: forces and multipliers of a solver.
        dynamics: `M a = f + B p + Gᵀ lam`, `G a + c = 0`.
        condensed: `a = T p + t` and the multipliers that follow from p.
        whitened: the substitution in which the QP was solved.
        rows: the inequalities.
        cost: what is minimised.
    """
    p, w, mu = candidate.p, candidate.w, candidate.mu
    M, f, B, G, c = dynamics
    a = condensed.T @ p + condensed.t
    lam = multipliers(condensed, p)
    size_p, size_lam = length(p), length(lam)
    size_x = length(candidate.x)
    far = whitened.distance
    dynamics_gap = length(M @ a - f - B @ p - G.T @ lam) / (1 + length(f) + size_p)
    constraint_gap = length(condensed.kept * (G @ a + c)) / (1 + length(a))
    value = rows.value(p, lam, w)
    above, below = value - rows.upper, rows.lower - value
    primal = length(positive(above) + positive(below)) / (1 + size_lam + size_p)
    gradient = cost_gradient(candidate, (a, lam), condensed, cost)
    gradient = gradient + row_gradient(candidate, condensed, rows)
    stationarity = length(whitened.L_inv.T @ gradient) / (1 + size_x + far)
    gaps = ca.fabs(positive(mu) * above) + ca.fabs(positive(-mu) * below)
    complementarity = ca.sum1(gaps) / (1 + size_x**2 + far**2)
    return ca.vertcat(dynamics_gap, constraint_gap, primal, stationarity, complementarity)


def cost_gradient(
    candidate: Candidate, motion: tuple[ca.SX, ca.SX], condensed: Condensed, cost: Cost
) -> ca.SX:
    """Return the derivative of the cost by y = (p, w), from the tasks themselves.

    `Tᵀ Jᵀ W (J a + offset) + r_p (p - p_ref)`, `r_w w`, and the weight on contact forces.

    Args:
        candidate: forces and multipliers of a solver.
        motion: acceleration a (nv,) and multipliers lam (m,) of the candidate.
        condensed: `a = T p + t`.
        cost: what is minimised.
    """
    a, lam = motion
    p, w = candidate.p, candidate.w
    misses = cost.weight * (cost.J @ a + cost.offset)
    by_p = condensed.T.T @ (cost.J.T @ misses) + cost.torque_weight * (p - cost.p_ref)
    by_w = cost.internal_force_weight * w
    if cost.force_weight:
        first = lam.numel() - cost.of_lam.shape[1]
        force = cost.of_lam @ lam[first:, 0] + cost.of_w @ w - cost.f_ref
        by_lam = ca.vertcat(ca.SX(first, 1), cost.of_lam.T @ force)
        by_p = by_p + cost.force_weight * _through_multipliers(condensed, by_lam)
        by_w = by_w + cost.force_weight * (cost.of_w.T @ force)
    return ca.vertcat(by_p, by_w)


def row_gradient(candidate: Candidate, condensed: Condensed, rows: Rows) -> ca.SX:
    """Return `A_yᵀ mu`: `C_pᵀ mu + (∂lam/∂p)ᵀ C_lamᵀ mu` and `C_wᵀ mu`."""
    mu = candidate.mu
    by_p = rows.C_p.T @ mu + _through_multipliers(condensed, rows.C_lam.T @ mu)
    return ca.vertcat(by_p, rows.C_w.T @ mu)


def _through_multipliers(condensed: Condensed, by_lam: ca.SX) -> ca.SX:
    """Return `(∂lam/∂p)ᵀ by_lam = -Y_Bᵀ R⁻ᵀ by_lam`."""
    rhs = ca.densify(by_lam)
    return -condensed.Y_B.T @ solve_upper_transposed(condensed.R, condensed.R_inv_diag, rhs)
