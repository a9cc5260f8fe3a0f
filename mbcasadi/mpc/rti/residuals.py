"""The check of a real-time iteration's QP solution, in the problem with states and slacks.

    primal            violation of rows with their slacks, relative to their values,
    stationarity      gradient by every υ, from costates run backward, and by every e,
    complementarity   Σ |λ gap|,

relative to the size of their terms. A solver's claim of success is not used.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.mpc.rti.condensing import Parts
from mbcasadi.mpc.rti.constraints import Rows
from mbcasadi.qp.kkt_residuals import positive


class Answer(NamedTuple):
    """Deviations (nx, N + 1) and (nu, N), values of the rows, slacks, multipliers of A_qp."""

    xi: Any
    upsilon: Any
    values: tuple[Any, Any]
    e: Any
    lam: Any


def residuals(answer: Answer, lin: Any, end: tuple[Any, Any], parts: Parts, rows: Rows) -> Any:
    """Return the three residuals.

    Args:
        answer: the candidate.
        lin: the linearised intervals, one column for each.
        end: cost and rows of the last sample.
        parts: the Functions of an interval.
        rows: all rows of the QP.
    """
    ocp, N, count = rows.ocp, rows.ocp.horizon, len(rows.bounds)
    values, signs = rows.rows(*answer.values), rows.S @ answer.e
    given = values + rows.W @ answer.e if rows.linear.size else values
    above: Any = given - ca.DM(rows.bounds[:, 1])
    below: Any = ca.DM(rows.bounds[:, 0]) - given
    extent: Any = 1 + ca.norm_2(values)
    missed: Any = ca.vertcat(positive(above) + positive(below), positive(-signs))
    primal: Any = ca.norm_2(missed) / extent

    cost, last = end
    lam, of_signs = answer.lam[:count], answer.lam[count:]
    mu, mu_end = rows.pressed(lam)
    costate = cost[:, : ocp.nx] @ answer.xi[:, N] + cost[:, ocp.nx]
    costate += last[:, : ocp.nx].T @ mu_end
    back = list(reversed(range(N)))
    loop = parts.adjoint.mapaccum("adjoint_all", N, 1)
    sides = (answer.xi[:, back], answer.upsilon[:, back], mu[:, back])
    _, slope, sizes = loop(costate, lin[:, back], *sides)
    scale = ca.sqrt(ca.sum2(sizes))
    stationarity: Any = ca.norm_2(ca.vec(slope)) / scale

    gap = ca.sum1(ca.fabs(lam * ca.if_else(lam > 0, above, below)))
    if rows.linear.size:
        price = ca.DM(rows.linear) + ca.DM(rows.quadratic) * answer.e
        of_e = rows.W.T @ lam
        # Signs are rows of s = √ρ₂ (e + ρ₁ / ρ₂) in the QP.
        held = ca.DM(np.sqrt(rows.quadratic[rows.signed])) * of_signs
        by_e: Any = price + of_e + rows.S.T @ held
        parted = 1 + ca.norm_2(price) + ca.norm_2(of_e) + ca.norm_2(held)
        stationarity += ca.norm_2(by_e) / parted
        gap += ca.sum1(ca.fabs(held * signs))
    return ca.vertcat(primal, stationarity, gap / (scale * extent))
