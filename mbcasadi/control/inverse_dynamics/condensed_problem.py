"""The controller's QP at its symbolic inputs: assembled, condensed and whitened."""

from dataclasses import dataclass

import casadi as ca

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
        problem: the parts of the QP.
        scales: the units of the problem.
        weights: of the forces.
        condensed: `a = T p + t` and the multipliers that follow from p.
        H, g: lower triangle (n, n) of the Hessian and gradient (n,) at y = 0.
        whitened: `y = y_0 + L_inv x`.
    """

    inputs: Inputs
    valid: ca.SX
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
    weights = units.force_weights(setup)
    H, g = objective(setup, problem, condensed, weights)
    return CondensedProblem(inputs, valid, problem, units, weights, condensed, H, g, whiten(H, g))
