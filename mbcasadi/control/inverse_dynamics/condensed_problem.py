"""The controller's QP at its symbolic inputs: assembled, condensed and whitened."""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed, condense
from mbcasadi.control.inverse_dynamics.inputs import Inputs, guard_inputs
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.problem import (
    ForceWeights,
    Problem,
    assemble_problem,
    objective,
)
from mbcasadi.control.inverse_dynamics.scaling import ProblemScales, measure_problem
from mbcasadi.qp.whitening import Whitened, whiten
from mbcasadi.system.closing import row_scale_at


@dataclass(frozen=True)
class CondensedProblem:
    """The QP in y = (p, w), and what it was made from.

    Attributes:
        inputs: what the QP was made from.
        valid: whether the inputs were valid.
        clipped: whether a task asked for so much that its error was clipped.
        problem: the parts of the QP.
        scales: the units of the problem.
        weights: of the forces.
        condensed: `a = T p + t` and the multipliers that follow from p.
        H, g: lower triangle (n, n) of the Hessian and gradient (n,) at y = 0.
        whitened: `y = y_0 + L_inv x`.
    """

    inputs: Inputs
    valid: ca.SX
    clipped: ca.SX
    problem: Problem
    scales: ProblemScales
    weights: ForceWeights
    condensed: Condensed
    H: ca.SX
    g: ca.SX
    whitened: Whitened


def condensed_problem(
    setup: Setup, symbols: dict[str, ca.SX], scales: ProblemScales | None = None
) -> CondensedProblem:
    """Return the QP at symbolic inputs.

    Args:
        setup: the options.
        symbols: inputs of the controller, by name.
        scales: the units of the problem, where they are known already.
    """
    inputs, valid = guard_inputs(setup, symbols)
    problem = assemble_problem(setup, inputs)
    units = measure_problem(setup, symbols, problem) if scales is None else scales
    condensed = condense(
        problem.definite,
        problem.v,
        row_scale=row_scale_at(ca.DM(units.rows), setup.rank_tol, problem.gap),
        rank_tol=setup.rank_tol,
    )
    problem, clipped = _clip_errors(problem, condensed, units)
    weights = units.force_weights(setup)
    H, g = objective(setup, problem, condensed, weights)
    return CondensedProblem(
        inputs, valid, clipped, problem, units, weights, condensed, H, g, whiten(H, g)
    )


def _clip_errors(
    problem: Problem, condensed: Condensed, scales: ProblemScales
) -> tuple[Problem, ca.SX]:
    """Return the problem with all errors divided by the largest excess of a reference.

    What a task asks for, less `J̇ v`, has a limit: more cannot be reached. What is shortened are the
    errors without actuator forces, by one factor: entry by entry, a motor could turn round. The
    second value is whether a task asked for more than its limit.
    """
    limited = [i for i, limit in enumerate(scales.asked) if np.isfinite(limit)]
    if not limited:
        return problem, ca.SX(0)
    tasks = problem.tasks
    drift, offset = ca.densify(tasks.J @ condensed.t), ca.densify(tasks.offset)
    excess = ca.mmax(ca.fabs(offset[limited, 0]) / ca.DM(scales.asked[limited]))
    clipped = excess > 1
    offset = ca.if_else(clipped, (drift + offset) / excess - drift, offset)
    return replace(problem, tasks=replace(tasks, offset=offset)), clipped
