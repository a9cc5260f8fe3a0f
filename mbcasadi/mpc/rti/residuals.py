"""The check of a real-time iteration's QP solution, in the problem with states and slacks.

    primal            violation of rows with their slacks, relative to their values,
    stationarity      gradient by every υ, from costates run backward, and by every e,
    complementarity   Σ |λ gap|,

relative to the size of their terms. The solver's status is not used.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.mpc.rti.condensing import IntervalFunctions
from mbcasadi.mpc.rti.constraints import Rows
from mbcasadi.qp.kkt_residuals import positive


class Candidate(NamedTuple):
    """Deviations (nx, N + 1) and (nu, N), values of the rows, slacks, multipliers of A_qp."""

    xi: ca.MX
    upsilon: ca.MX
    values: tuple[ca.MX, ca.MX]
    e: ca.MX
    lam: ca.MX


def residuals(
    candidate: Candidate,
    lin: ca.MX,
    end: tuple[ca.MX, ca.MX],
    intervals: IntervalFunctions,
    rows: Rows,
) -> ca.MX:
    """Return the three residuals.

    Args:
        candidate: the candidate.
        lin: the linearised intervals, one column for each.
        end: cost and rows of the last sample.
        intervals: the Functions of an interval.
        rows: all rows of the QP.
    """
    ocp, N, count = rows.ocp, rows.ocp.horizon, len(rows.bounds)
    values, signs = rows.rows(*candidate.values), rows.S @ candidate.e
    relaxed = values + rows.W @ candidate.e if rows.linear.size else values
    above = relaxed - ca.DM(rows.bounds[:, 1])
    below = ca.DM(rows.bounds[:, 0]) - relaxed
    extent = 1 + ca.norm_2(values)
    violation = ca.vertcat(positive(above) + positive(below), positive(-signs))
    primal = ca.norm_2(violation) / extent

    cost, last = end
    lam, of_signs = candidate.lam[:count], candidate.lam[count:]
    mu, mu_end = rows.value_multipliers(lam)
    costate = cost[:, : ocp.nx] @ candidate.xi[:, N] + cost[:, ocp.nx]
    costate += last[:, : ocp.nx].T @ mu_end
    backward = list(reversed(range(N)))
    loop = intervals.adjoint.mapaccum("adjoint_all", N, 1)
    sides = (
        candidate.xi[:, backward],
        candidate.upsilon[:, backward],
        mu[:, backward],
    )
    _, slope, sizes = loop(costate, lin[:, backward], *sides)
    scale = ca.sqrt(ca.sum2(sizes))
    stationarity = ca.norm_2(ca.vec(slope)) / scale

    complementarity = ca.sum1(ca.fabs(lam * ca.if_else(lam > 0, above, below)))
    if rows.linear.size:
        price = ca.DM(rows.linear) + ca.DM(rows.quadratic) * candidate.e
        of_e = rows.W.T @ lam
        # Signs are rows of s = √ρ₂ (e + ρ₁ / ρ₂) in the QP.
        sign_multipliers = ca.DM(np.sqrt(rows.quadratic[rows.signed])) * of_signs
        by_e = price + of_e + rows.S.T @ sign_multipliers
        slack_scale = 1 + ca.norm_2(price) + ca.norm_2(of_e) + ca.norm_2(sign_multipliers)
        stationarity += ca.norm_2(by_e) / slack_scale
        complementarity += ca.sum1(ca.fabs(sign_multipliers * signs))
    return ca.vertcat(primal, stationarity, complementarity / (scale * extent))
