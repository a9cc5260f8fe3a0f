"""KKT residuals of a QP, and the status that they allow.

The solver's status is not used: a solution is accepted only if the residuals that are
computed here are small. NaN makes a residual NaN, and NaN is not `<= tol`.
"""

import casadi as ca

from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.description.status import Status
from mbcasadi.description.tolerance import tolerance as marked_tolerance
from mbcasadi.linalg.symbols import Sym
from mbcasadi.qp.input_guard import LARGEST_CONTROL


def positive(value: Sym) -> Sym:
    """Return `max(value, 0)`; NaN stays NaN, which `fmax` would hide."""
    return 0.5 * (value + ca.fabs(value))


def length(value: Sym) -> Sym:
    """Return the Euclidean length of a column."""
    return ca.sqrt(ca.sumsqr(ca.densify(value)))


QP_RESIDUALS = ("primal", "stationarity", "complementarity")
"""Residuals with which every QP's solution is checked, in this order."""


PROVEN = (SolverFlag.STOPPED + SolverFlag.INFEASIBLE) / 2
"""The solver's flag is below this where the problem is proven to be infeasible."""


def judge(
    residual: Sym,
    *,
    flag: Sym,
    valid: Sym,
    tolerance: float,
    consistent: Sym | None = None,
) -> Sym:
    """Return the status code of a QP's solution with these residuals.

    Where a row is violated, the problem is infeasible if this is proven; otherwise the solver
    failed, or stopped. A point that violates nothing and has residuals that are not finite is no
    solution: failed.

    Args:
        residual: (3,) relative, in the order of `QP_RESIDUALS`.
        flag: a `SolverFlag`.
        valid: whether the inputs were valid.
        tolerance: bound of each residual.
        consistent: whether further equations hold; None where there are none.
    """
    tolerance = marked_tolerance(tolerance)
    small = [residual[i] <= tolerance for i in range(len(QP_RESIDUALS))]
    optimal = ca.logic_and(small[1], small[2])
    finite = ca.sum1(ca.fabs(residual)) <= LARGEST_CONTROL
    infeasible = ca.logic_and(residual[0] > tolerance, flag < PROVEN)
    status = ca.if_else(
        small[0],
        ca.if_else(optimal, Status.SOLVED, ca.if_else(finite, Status.SUBOPTIMAL, Status.FAILED)),
        ca.if_else(infeasible, Status.INFEASIBLE, Status.FAILED),
    )
    if consistent is not None:
        status = ca.if_else(consistent, status, Status.FAILED)
    return ca.if_else(valid, status, Status.BAD_INPUT)
