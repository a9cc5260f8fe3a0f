"""KKT residuals of a QP, and the status that they allow.

A solver's own success is not believed: a solution counts only if the residuals that are
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


def judge(
    primal: Sym,
    stationarity: Sym,
    complementarity: Sym,
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
        primal, stationarity, complementarity: residuals, relative.
        solver_claims: whether the solver reports an optimum.
        valid: whether the inputs were valid.
        tolerance: bound of each residual.
        consistent: whether further equations hold; None where there are none.
    """
    optimal = ca.logic_and(stationarity <= tolerance, complementarity <= tolerance)
    infeasible = ca.logic_and(primal > tolerance, ca.logic_not(solver_claims))  # false for NaN
    status = ca.if_else(
        primal <= tolerance,
        ca.if_else(optimal, int(Status.SOLVED), int(Status.SUBOPTIMAL)),
        ca.if_else(infeasible, int(Status.INFEASIBLE), int(Status.FAILED)),
    )
    if consistent is not None:
        status = ca.if_else(consistent, status, int(Status.FAILED))
    return ca.if_else(valid, status, int(Status.BAD_INPUT))
