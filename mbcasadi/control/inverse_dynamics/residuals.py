"""Residuals of a candidate solution on the original equations.

Whatever solver ran, its solution is accepted only if these five numbers are small:

    dynamics         |M a - f - B p - Gᵀ lam|, entry by entry over the inertia's root
    constraint       |G a + c| over the rows' lengths, that of dropped rows over their allowance
    primal           violation of the inequalities, each over what is in it
    stationarity     |L⁻ᵀ (∇ cost + Aᵀ mu)|
    complementarity  Σ |mu_i gap_i|, of a quadratic cone |muᵀ s|

each relative to the size of what is in it, in the mechanism's own units (`scaling.py`): none of
them changes when the units of the model do. `x` is the whitened unknown of `qp/whitening.py`, in
which the cost is `½ |x|²`: stationarity there bounds the distance to the optimum. NaN makes a
residual NaN, and NaN is not `<= tol`.
"""

from dataclasses import dataclass
from typing import Protocol

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed, Dynamics
from mbcasadi.control.inverse_dynamics.scales import ForceWeights, ProblemScales
from mbcasadi.control.inverse_dynamics.weighed_forces import WeighedForces
from mbcasadi.description.tolerance import marked, tolerance
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp import quadratic_cones
from mbcasadi.qp.kkt_residuals import QP_RESIDUALS, length
from mbcasadi.qp.rows import Rows

Array = NDArray[np.float64]

RESIDUALS = ("dynamics", "constraint", *QP_RESIDUALS)

ROUNDED = 1e-2
"""Share of the usual forces that counts as part of each inequality: where nothing else is in it,
this times the tolerance is rounding."""

CANCELLED = marked(1e-8, 5e-3)
"""Share of all forces, and of what limited actuators can give, that counts as part of each row: the
motion of a locked mechanism, or of a joint at its stop, is rounding, 1e-14 of them at the usual
tolerance, 5e-6 in float."""

NOTHING = 1e-150
"""Size that stands for zero in a denominator: a problem without forces and accelerations."""


@dataclass(frozen=True)
class CostAt:
    """What is minimised, in the terms of `problem.py`.

    Attributes:
        J, offset, weight: (k, nv), (k,), (k,) of the tasks, `½ |J a + offset|²_W`.
        p_ref: (np,) reference of the actuator forces.
        of_lam, of_w, f_ref: forces in the cost, see `WeighedForces`.
        weights: r_p, r_w of the regularisation.
        force_weights: r_f of these forces.
        size: length of the tasks' weighted error at p = 0.
        slack_weight: weights (k,) of the first k unknowns w, beside r_w; None for none.
    """

    J: ca.SX
    offset: ca.SX
    weight: ca.SX
    p_ref: ca.SX
    of_lam: ca.SX
    of_w: ca.SX
    f_ref: ca.SX
    weights: ForceWeights
    force_weights: Array
    size: ca.SX
    slack_weight: ca.SX | None = None


class Metric(Protocol):
    """The metric in which a gradient is measured, as `Whitened` has it."""

    @property
    def distance(self) -> ca.SX:
        """Length of x between y = 0 and its origin: the scale of rounding errors in x."""

    def gradient(self, by_y: ca.SX) -> ca.SX:
        """Return a gradient (n,) by x."""


@dataclass(frozen=True)
class Candidate:
    """A candidate: actuator forces, internal forces, multipliers of the rows, whitened unknown."""

    p: ca.SX
    w: ca.SX
    mu: ca.SX
    x: ca.SX


@dataclass(frozen=True)
class Allowance:
    """What a dropped row may be violated by, relative to the accepted residual of a kept one.

    Attributes:
        rank_tol: share of an acceleration that the remainder of a dropped row explains.
        rate: 1/s: share of a velocity across the kept rows by which redundant rows differ.
        tolerance: accepted residual of kept rows.
    """

    rank_tol: float
    rate: ca.SX
    tolerance: float


def residuals(
    candidate: Candidate,
    dynamics: Dynamics,
    condensed: Condensed,
    whitened: Metric,
    rows: Rows,
    cost: CostAt,
    scales: ProblemScales,
    allowance: Allowance,
    drag: ca.SX | None = None,
    *,
    acts: bool = True,
) -> ca.SX:
    """Return the residuals (5,) of a candidate, in the order of `RESIDUALS`.

    Args:
        candidate: forces and multipliers of a solver.
        dynamics: `M a = f + B p + Gᵀ lam`, `G a + c = 0`.
        condensed: `a = T p + t` and the multipliers that follow from p.
        whitened: the substitution in which the QP was solved.
        rows: the inequalities.
        cost: what is minimised.
        scales: the units of the problem.
        allowance: what a dropped row may be violated by.
        drag: (nv, k) friction by each multiplier of the contacts, where some slide.
        acts: whether the forces act; of others dynamics and constraints are not judged.
    """
    p, w, mu = candidate.p, candidate.w, candidate.mu
    a, lam = condensed.acceleration(p), condensed.multipliers(p)
    gradient = cost_gradient(candidate, (a, lam), condensed, cost)
    gradient = gradient + row_gradient(candidate, condensed, rows)
    known = {
        "p": p,
        "mu": mu,
        "x": candidate.x,
        "a": a,
        "lam": lam,
        "M_a": linalg.product(dynamics.M, a),
        "value": rows.value(p, lam, w, a),
        "within": rows.size(p, lam, w, a),
        "lower": rows.lower,
        "upper": rows.upper,
        "gradient": whitened.gradient(gradient),
        "kept": condensed.kept,
        "a_ref": condensed.a_ref,
        "slip": condensed.slip,
        "distance": whitened.distance,
        "size": cost.size,
        "rate": allowance.rate,
    }
    if acts:
        known["f"] = dynamics.f + linalg.product(dynamics.B, p) + linalg.product(dynamics.G.T, lam)
        known["rows"] = linalg.product(dynamics.G, a) + dynamics.c
        if drag is not None:
            known["f"] += linalg.product(drag, lam[lam.numel() - drag.shape[1] :, 0])
    relative: list[ca.SX] = in_scalars(
        "residuals", lambda k: [_relative(k, scales, allowance, rows.cones)], known
    )
    return relative[0]


def _relative(
    known: dict[str, ca.SX], scales: ProblemScales, allowance: Allowance, cones: int
) -> ca.SX:
    """Return the residuals (5,) from the sums that they compare."""
    k = known
    kinetic = ca.sqrt(ca.fmax(ca.dot(k["a"], k["M_a"]), 0)) + k["a_ref"] + NOTHING
    forces = length(ca.DM(scales.actuators) * k["p"]) + length(ca.DM(scales.rows) * k["lam"])
    forces = kinetic + forces
    bounded = (k["value"], k["lower"], k["upper"], cones)
    cancelled = CANCELLED * (forces + (scales.strength if np.isfinite(scales.strength) else 0.0))
    usual = k["within"] + ca.DM(scales.inequalities) * (ROUNDED * forces + cancelled)
    size_x = length(k["x"]) + k["distance"] + k["size"] + NOTHING
    of_motion = [ca.SX.zeros(2)]
    if "f" in k:
        of_motion = [
            length((k["M_a"] - k["f"]) / ca.DM(scales.coordinates)) / forces,
            _constraint_residual(k, scales, allowance, kinetic + cancelled),
        ]
    return ca.vertcat(
        *of_motion,
        length(quadratic_cones.violations(*bounded) / quadratic_cones.sizes(usual, cones)),
        length(k["gradient"]) / size_x,
        ca.sum1(quadratic_cones.gaps(k["mu"], *bounded)) / size_x**2,
    )


def _constraint_residual(
    known: dict[str, ca.SX], scales: ProblemScales, allowance: Allowance, kinetic: ca.SX
) -> ca.SX:
    """Return the largest violation of a row, of dropped ones relative to what is explained.

    A dropped row counts as violated when `|G_i a + c_i|` is more than its remainder explains,
    `rank_tol · |G_i| · |a|`, and than a velocity across the kept rows can.

    Args:
        known: `rows`, `kept`, `slip` and `rate`.
        scales, allowance: as in `residuals`.
        kinetic: size of the acceleration, and of what rounding leaves of forces that cancel.
    """
    if not known["rows"].shape[0]:
        return ca.SX(0)
    violation = ca.fabs(known["rows"]) / ca.DM(scales.rows)
    explained = tolerance(allowance.rank_tol) * kinetic + known["rate"] * known["slip"]
    share = ca.if_else(known["kept"], 1 / kinetic, tolerance(allowance.tolerance) / explained)
    return length(violation * share)


def cost_gradient(
    candidate: Candidate, motion: tuple[ca.SX, ca.SX], condensed: Condensed, cost: CostAt
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
    misses = cost.weight * (linalg.product(cost.J, a) + cost.offset)
    by_a = linalg.product(cost.J.T, misses)
    by_p = linalg.product(condensed.T.T, by_a) + ca.DM(cost.weights.actuators) * (p - cost.p_ref)
    by_w = cost.weights.internal * w
    if cost.slack_weight is not None:
        k = cost.slack_weight.numel()
        by_w += ca.vertcat(cost.slack_weight * w[:k, 0], ca.DM.zeros(w.numel() - k))
    if np.any(cost.force_weights):
        forces = WeighedForces(cost.of_lam, cost.of_w, cost.f_ref, cost.force_weights)
        first = lam.numel() - cost.of_lam.shape[1]
        force = ca.DM(cost.force_weights) * forces.gap(lam, w)
        by_lam = linalg.product(cost.of_lam.T, force)
        by_p -= linalg.product(condensed.E[first:, :].T, by_lam)
        by_w += linalg.product(cost.of_w.T, force)
    return ca.vertcat(by_p, by_w)


def row_gradient(candidate: Candidate, condensed: Condensed, rows: Rows) -> ca.SX:
    """Return `A_yᵀ mu`: `C_pᵀ mu - Eᵀ C_lamᵀ mu + Tᵀ C_aᵀ mu` and `C_wᵀ mu`."""
    mu = candidate.mu
    by_lam = linalg.product(rows.C_lam.T, mu)
    by_p = linalg.product(rows.C_p.T, mu) - linalg.product(condensed.E.T, by_lam)
    if rows.C_a.nnz():
        by_p += linalg.product(condensed.T.T, linalg.product(rows.C_a.T, mu))
    return ca.vertcat(by_p, linalg.product(rows.C_w.T, mu))
