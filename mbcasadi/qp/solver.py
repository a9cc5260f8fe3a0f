"""The controller as one Function: build, solve by a CasADi plugin, finish."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca

from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.qp_stages import (
    PLUGIN_PRIMAL_TOLERANCE,
    UNBOUNDED,
    ZERO_BOUND,
    ZERO_ROW,
    SolverFlag,
)
from mbcasadi.errors import SolverError
from mbcasadi.qp.infeasibility import proves_infeasible

STATIONARY = 1e-6
"""Relative size of `x + A_qpᵀ lam_a`, and of a violation, up to which DAQP claims an optimum."""

LARGEST_SQUARE = 1e300
"""Rows with a sum of squares of this or more count as invalid; the exported C does the same."""

QRQP = {"print_iter": False, "print_header": False, "print_info": False, "print_time": False}

DENSE_SOLVERS: dict[str, dict[str, Any]] = {
    "daqp": {"error_on_fail": False, "daqp": {"primal_tol": PLUGIN_PRIMAL_TOLERANCE}},
    "qrqp": {"error_on_fail": False, **QRQP},
}
"""Plugins for least-distance problems, with their options."""

ACCURACY = 1e-12
"""Residual at which a solver stops."""

SPARSE_SOLVERS: dict[str, dict[str, Any]] = {
    "proxqp": {"proxqp": {"eps_abs": ACCURACY, "eps_rel": 0.0}},
    "piqp": {"piqp": {"eps_abs": ACCURACY, "eps_rel": ACCURACY}},
    "qrqp": QRQP,
}
"""Plugins for the sparse form of linear MPC, with their options."""


def require_solver(solver: str) -> None:
    """Raise `SolverError` unless CasADi has this solver and it serves least-distance problems."""
    _require_plugin(solver, DENSE_SOLVERS, "a least-distance problem")


def require_sparse_solver(solver: str) -> None:
    """Raise `SolverError` unless CasADi has this solver and it serves the sparse form of MPC."""
    _require_plugin(solver, SPARSE_SOLVERS, "the sparse form")


def _require_plugin(solver: str, table: Mapping[str, object], purpose: str) -> None:
    if not isinstance(solver, str) or solver not in table:
        names = ", ".join(map(repr, table))
        raise SolverError(f"solver {solver!r}; expected one of {names} for {purpose}")
    if not ca.has_conic(solver):
        raise SolverError(f"this CasADi has no plugin {solver!r}; install the official wheel")


def controller_fun(name: str, stages: LeastDistanceStages, solver: str) -> ca.Function:
    """Return (inputs) → (u, z_next, status, flags, residual): all phases of a tick."""
    inputs, finish = _inputs(stages), stages.finish
    found = _solve(stages, solver, inputs)
    extra = [] if stages.prepare is None else [found.prepared]
    answer = [found.carry, found.x, found.lam_a, ca.sign(found.lam_a), found.flag]
    outputs = finish.call([*inputs, *extra, *answer])
    return ca.Function(name, inputs, outputs, list(stages.inputs), finish.name_out())


def candidate_fun(stages: LeastDistanceStages, solver: str) -> ca.Function:
    """Return (inputs) → (x), the solver's result before it is checked."""
    inputs = _inputs(stages)
    x = _solve(stages, solver, inputs).x
    return ca.Function("candidate", inputs, [x], list(stages.inputs), ["x"])


class _Solution(NamedTuple):
    x: ca.MX
    lam_a: ca.MX
    flag: ca.MX
    carry: ca.MX
    prepared: ca.MX


def _inputs(stages: LeastDistanceStages) -> list[ca.MX]:
    return [ca.MX.sym(name, pattern) for name, pattern in stages.inputs.items()]


def _solve(stages: LeastDistanceStages, solver: str, inputs: list[ca.MX]) -> _Solution:
    """Return the solver's result, and what the stages pass on to `finish`.

    A plugin's success flag does not exist inside an MX graph. DAQP returns `x + A_qpᵀ lam_a = 0`
    and x inside the bounds where it claims an optimum, and elsewhere not: without this x and lam_a
    are zero, as in the exported C. Where it finds the rows infeasible, `lam_a` of rows of unit
    length is the proof. qrqp always counts as claiming an optimum. A problem that a plugin would
    refuse by an exception is not passed to it.
    """
    given = stages.problem().call(inputs, True, False)
    carry, prepared = given[4:]
    A_qp, lba, uba, posed = _well_posed(*given[:3])
    pattern = {"h": ca.Sparsity.diag(stages.n), "a": A_qp.sparsity()}
    conic = ca.conic("least_distance", solver, pattern, DENSE_SOLVERS[solver])
    lengths = ca.sqrt(ca.sum2(A_qp**2))
    unit = _unit(lengths, lba, uba) if solver == "daqp" and stages.m else ca.MX(1)
    eye, zero = ca.DM.eye(stages.n), ca.DM.zeros(stages.n)
    found = conic(h=eye, g=zero, a=A_qp, lba=lba / unit, uba=uba / unit)
    x, lam_a = unit * found["x"], unit * found["lam_a"]
    if not stages.m:
        return _Solution(x, lam_a, posed, carry, prepared)
    without = ca.if_else(_contradicts(*given[:3]), SolverFlag.INFEASIBLE, SolverFlag.STOPPED)
    if solver != "daqp":
        flag = ca.if_else(posed, SolverFlag.OPTIMAL, without)
        return _Solution(x, lam_a, flag, carry, prepared)
    stationary = ca.norm_2(x + A_qp.T @ lam_a) <= STATIONARY * (1 + ca.norm_2(x))
    violation = ca.fmax(A_qp @ x - uba, lba - A_qp @ x) / ca.if_else(lengths > 0, lengths, ca.inf)
    kept = ca.mmax(violation) <= STATIONARY * unit  # x and lam_a are zero where DAQP stops early
    optimal = ca.logic_and(posed, ca.logic_and(stationary, kept))
    ray = found["lam_a"] / ca.if_else(lengths > 0, lengths, ca.inf)
    proven = ca.logic_and(posed, proves_infeasible(A_qp, lba, uba, ray, unit))
    flag = ca.if_else(proven, SolverFlag.INFEASIBLE, without)
    flag = ca.if_else(optimal, SolverFlag.OPTIMAL, flag)
    return _Solution(
        ca.if_else(optimal, x, 0), ca.if_else(optimal, lam_a, 0), flag, carry, prepared
    )


def _well_posed(A_qp: ca.MX, lba: ca.MX, uba: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX, ca.MX]:
    """Return a problem that every plugin accepts, and whether it is the given one.

    Bounds that cross by rounding meet in the middle. NaN, numbers whose squares overflow, and
    crossed or wrongly infinite bounds give a problem without rows.
    """
    middle = (lba + uba) / 2
    near = ca.logic_and(lba > uba, lba - uba <= PLUGIN_PRIMAL_TOLERANCE * (1 + ca.fabs(uba)))
    lba, uba = ca.if_else(near, middle, lba), ca.if_else(near, middle, uba)
    ordered = ca.logic_and(lba <= uba, ca.logic_and(lba < UNBOUNDED, uba > -UNBOUNDED))
    posed = ca.logic_and(ca.sum1(ordered) == lba.numel(), _is_finite(A_qp))
    A_qp = ca.if_else(posed, A_qp, 0)
    return A_qp, ca.if_else(posed, lba, -ca.inf), ca.if_else(posed, uba, ca.inf), posed


def _is_number(value: ca.MX) -> ca.MX:
    """Return false for NaN; CasADi takes `value == value` for true."""
    return ca.logic_or(value < 1, value > 0)


def _is_finite(A_qp: ca.MX) -> ca.MX:
    return ca.sumsqr(A_qp) < LARGEST_SQUARE


def _contradicts(A_qp: ca.MX, lba: ca.MX, uba: ca.MX) -> ca.MX:
    """Return whether one row alone cannot be met: crossed bounds, or a zero row; not for NaN."""
    lengths = ca.sqrt(ca.sum2(A_qp**2))
    zero = lengths <= ZERO_ROW * ca.mmax(lengths)
    crossed = lba - uba > PLUGIN_PRIMAL_TOLERANCE * (1 + ca.fabs(uba))
    walls = ca.logic_or(lba >= UNBOUNDED, uba <= -UNBOUNDED)
    apart = ca.logic_and(zero, ca.logic_or(lba > ZERO_BOUND, uba < -ZERO_BOUND))
    some = ca.sum1(ca.logic_or(ca.logic_or(crossed, walls), apart)) > 0
    numbers = ca.sum1(ca.logic_and(_is_number(lba), _is_number(uba))) == lba.numel()
    return ca.logic_and(some, ca.logic_and(numbers, _is_finite(A_qp)))


def _unit(length: ca.MX, lba: ca.MX, uba: ca.MX) -> ca.MX:
    """Return the unit of x to which DAQP's tolerance refers; the exported C uses the same.

    The power of two above the largest distance of a row from x = 0, at least 1.
    """
    present = length > ZERO_ROW * ca.mmax(length)
    distance = ca.fmax(lba, -uba) / ca.if_else(present, length, 1)
    largest = ca.mmax(ca.if_else(present, distance, 0))
    return 2 ** (ca.floor(ca.log(ca.fmax(largest, 1)) / math.log(2)) + 1)


CLAIMED = 0.5
"""A number that stands for a truth value is above this where it is true."""
