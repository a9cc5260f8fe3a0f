"""The controller as one Function: build, solve by a CasADi plugin, finish."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca

from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.qp_stages import PLUGIN_PRIMAL_TOLERANCE, UNBOUNDED, ZERO_ROW
from mbcasadi.errors import SolverError

STATIONARY = 1e-6
"""Relative size of `x + A_qpᵀ lam_a` up to which multipliers are those of an optimum."""

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
    where it claims an optimum, and not where it finds no feasible point: this gives the flag, and
    without it x and lam_a are zero, as in the exported C. qrqp always counts as claiming an
    optimum. A problem that a plugin would refuse by an exception is not passed to it; it counts
    as having no solution.
    """
    A_qp, lba, uba, _, carry, prepared = stages.problem().call(inputs, True, False)
    A_qp, lba, uba, posed = _well_posed(A_qp, lba, uba)
    pattern = {"h": ca.Sparsity.diag(stages.n), "a": A_qp.sparsity()}
    conic = ca.conic("least_distance", solver, pattern, DENSE_SOLVERS[solver])
    unit = _unit(A_qp, lba, uba) if solver == "daqp" and stages.m else ca.MX(1)
    eye, zero = ca.DM.eye(stages.n), ca.DM.zeros(stages.n)
    found = conic(h=eye, g=zero, a=A_qp, lba=lba / unit, uba=uba / unit)
    x, lam_a = unit * found["x"], unit * found["lam_a"]
    if solver != "daqp" or not stages.m:
        return _Solution(x, lam_a, posed, carry, prepared)
    stationary = ca.norm_2(x + A_qp.T @ lam_a) <= STATIONARY * (1 + ca.norm_2(x))
    flag = ca.logic_and(posed, stationary)
    answer = (ca.if_else(flag, x, 0), ca.if_else(flag, lam_a, 0), flag)
    return _Solution(*answer, carry, prepared)


def _well_posed(A_qp: ca.MX, lba: ca.MX, uba: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX, ca.MX]:
    """Return a problem that every plugin accepts, and whether it is the given one.

    Bounds that cross by rounding meet in the middle. NaN, numbers whose squares overflow, and
    crossed or wrongly infinite bounds give a problem without rows.
    """
    middle = (lba + uba) / 2
    near = ca.logic_and(lba > uba, lba - uba <= PLUGIN_PRIMAL_TOLERANCE * (1 + ca.fabs(uba)))
    lba, uba = ca.if_else(near, middle, lba), ca.if_else(near, middle, uba)
    ordered = ca.logic_and(lba <= uba, ca.logic_and(lba < UNBOUNDED, uba > -UNBOUNDED))
    posed = ca.logic_and(ca.sum1(ordered) == lba.numel(), ca.sumsqr(A_qp) < LARGEST_SQUARE)
    A_qp = ca.if_else(posed, A_qp, 0)
    return A_qp, ca.if_else(posed, lba, -ca.inf), ca.if_else(posed, uba, ca.inf), posed


def _unit(A_qp: ca.MX, lba: ca.MX, uba: ca.MX) -> ca.MX:
    """Return the unit of x to which DAQP's tolerance refers; the exported C uses the same.

    The power of two above the largest distance of a row from x = 0, at least 1.
    """
    length = ca.sqrt(ca.sum2(A_qp**2))
    present = length > ZERO_ROW * ca.mmax(length)
    distance = ca.fmax(lba, -uba) / ca.if_else(present, length, 1)
    largest = ca.mmax(ca.if_else(present, distance, 0))
    return 2 ** (ca.floor(ca.log(ca.fmax(largest, 1)) / math.log(2)) + 1)


CLAIMED = 0.5
"""The solver's flag is above this where it claims an optimum."""
