"""The controller's QP at its symbolic inputs: assembled, condensed and whitened."""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.condensed_dynamics import (
    Condensed,
    condense,
    constraint_basis,
    rooted,
)
from mbcasadi.control.inverse_dynamics.contacts.sliding_contacts import with_drag, without_drag
from mbcasadi.control.inverse_dynamics.far_errors import far_tasks
from mbcasadi.control.inverse_dynamics.followed_errors import followed_tasks
from mbcasadi.control.inverse_dynamics.objective import objective
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.parts.servo_dynamics import reachable
from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.control.inverse_dynamics.scales import ForceWeights, ProblemScales
from mbcasadi.control.inverse_dynamics.shared_loads import SharedLoads, share_loads
from mbcasadi.control.inverse_dynamics.viability import Demands, Viability
from mbcasadi.control.inverse_dynamics.weighed_forces import WeighedForces, weighed_forces
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.whitening import Whitened, whiten
from mbcasadi.system.closing import row_scale_at


@dataclass(frozen=True)
class CondensedProblem:
    """The QP in y = (p, w), and what it was made from.

    Attributes:
        clipped: whether a task required so much that its error was clipped.
        demands: of the limits of positions.
        problem: the parts of the QP.
        scales: the units of the problem.
        weights: of the forces.
        condensed: motion and multipliers that follow from p.
        H, g: cost at y = 0, see `objective`.
        whitened: y as a function of the unknown x of the QP.
        basis: of the constraint rows.
        shared: how multipliers are shared, or None.
        forces: those in the cost.
    """

    clipped: ca.SX
    demands: Demands
    problem: Problem
    scales: ProblemScales
    weights: ForceWeights
    condensed: Condensed
    H: ca.SX
    g: ca.SX
    whitened: Whitened
    basis: linalg.RowBasis[ca.SX]
    shared: SharedLoads | None
    forces: WeighedForces


def condensed_problem(setup: Setup, problem: Problem, units: ProblemScales) -> CondensedProblem:
    """Return the QP at a state.

    Args:
        setup: the options.
        problem: its parts, as scalars or as matrices.
        units: of the problem.
    """
    contacts, nu = problem.contacts, setup.system.nu
    dynamics = problem.definite
    if contacts.sliding:
        dynamics = with_drag(dynamics, contacts.drag, contacts.sliding)
    root = rooted(dynamics, problem.v, rows=problem.rows.lower.numel())
    basis = constraint_basis(
        root,
        row_scale=row_scale_at(ca.DM(units.rows), setup.rank_tol, problem.gap),
        rank_tol=setup.rank_tol,
    )
    condensed = condense(dynamics, root, basis)
    if contacts.sliding:
        first = dynamics.G.shape[0] - contacts.drag.shape[1]
        condensed = without_drag(condensed, nu, [first + row for row in contacts.sliding])
    problem, shared = share_loads(setup, setup.load_sharing, problem, basis, units)
    tasks = followed_tasks(setup, problem.tasks, units.followed)
    problem = replace(problem, tasks=far_tasks(setup, tasks, units.followed))
    problem, clipped = _clip_errors(problem, condensed, units)
    rows = reachable(problem.rows, condensed, problem.actuators)
    viability = Viability.of(setup)
    rows, demands = viability.viable_rows(rows, condensed, problem.actuators, units)
    problem = replace(problem, rows=rows)
    weights = units.force_weights
    forces = weighed_forces(setup.weighed_forces, problem, shared)
    H, g = objective(problem, condensed, weights, forces)
    whitened = whiten(H, g, weights.internal)
    return CondensedProblem(
        clipped, demands, problem, units, weights, condensed, H, g, whitened, basis, shared, forces
    )


def _clip_errors(
    problem: Problem, condensed: Condensed, scales: ProblemScales
) -> tuple[Problem, ca.SX]:
    """Return the problem with all errors divided by the largest excess of a reference.

    What a task requires, less `J̇ v`, has a limit: more cannot be reached. What is shortened are the
    errors without actuator forces, by one factor: entry by entry, a motor could turn round. The
    second value is whether a task required more than its limit.
    """
    limited = [i for i, limit in enumerate(scales.required) if np.isfinite(limit)]
    if not limited:
        return problem, ca.SX(0)
    tasks, required = problem.tasks, ca.DM(scales.required[limited])
    drift = ca.densify(linalg.product(tasks.J, condensed.t))
    offset, clipped = in_scalars(
        "shorten",
        lambda given: _shortened(given["offset"], given["drift"], limited, required),
        {"offset": ca.densify(tasks.offset), "drift": drift},
    )
    return replace(problem, tasks=replace(tasks, offset=offset)), clipped


def _shortened(offset: ca.SX, drift: ca.SX, limited: list[int], required: ca.DM) -> list[ca.SX]:
    """Return the offset, shortened where it is too long, and whether it was."""
    excess = ca.mmax(ca.fabs(offset[limited, 0]) / required)
    clipped = excess > 1
    return [
        ca.if_else(clipped, (drift + offset) / ca.if_else(clipped, excess, 1) - drift, offset),
        clipped,
    ]
