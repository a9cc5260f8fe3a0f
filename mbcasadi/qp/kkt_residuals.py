"""KKT residuals of a QP, and the status that they allow.

A solver's claim of success is not used: a solution is accepted only if the residuals that are
computed here are small. NaN makes a residual NaN, and NaN is not `<= tol`.
"""

import casadi as ca

from mbcasadi.description.status import Status
from mbcasadi.linalg.symbols import Sym


def positive(value: Sym) -> Sym:
    """Return `max(value, 0)`; NaN stays NaN, which `fmax` would hide."""
    return 0.5 * (value + ca.fabs(value))


def length(value: Sym) -> Sym:
    """Return the Euclidean length of a column."""
    return ca.sqrt(ca.sumsqr(ca.densify(value)))


QP_RESIDUALS = ("primal", "stationarity", "complementarity")
"""Residuals with which every QP's solution is checked, in this order."""


def judge(
    residual: Sym,
    *,
    solver_claims: Sym,
    valid: Sym,
    tolerance: float,
    consistent: Sym | None = None,
) -> Sym:
    """Return the status code of a QP's solution with these residuals.

    A violated row means infeasibility where the solver claims no optimum; where it claims one, it
    failed. NaN counts as large.

    Args:
        residual: (3,) relative, in the order of `QP_RESIDUALS`.
        solver_claims: whether the solver reports an optimum.
        valid: whether the inputs were valid.
        tolerance: bound of each residual.
        consistent: whether further equations hold; None where there are none.
    """
    small = [residual[i] <= tolerance for i in range(len(QP_RESIDUALS))]
    optimal = ca.logic_and(small[1], small[2])
    infeasible = ca.logic_and(residual[0] > tolerance, ca.logic_not(solver_claims))
    status = ca.if_else(
        small[0],
        ca.if_else(optimal, Status.SOLVED, Status.SUBOPTIMAL),
        ca.if_else(infeasible, Status.INFEASIBLE, Status.FAILED),
    )
    if consistent is not None:
        status = ca.if_else(consistent, status, Status.FAILED)
    return ca.if_else(valid, status, Status.BAD_INPUT)
