"""Linear MPC whose states are unknowns too: one QP with equality rows, in Python.

The same problem as the condensed form, for solvers that use sparsity, and for the inspection of a
mechanism's multipliers. For C use the condensed form: it is smaller and faster.

These solvers give no proof that a problem is infeasible, or one with the errors of their stopping
rule. Where their solution violates a row, the proof is that of the condensed form, from the rows
without states: the status of both is the same.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.description.status import Status
from mbcasadi.mpc.linear.condensing import (
    CondensedForm,
    LeastDistanceProblem,
    least_distance_problem,
)
from mbcasadi.mpc.linear.form import StagewiseForm
from mbcasadi.mpc.linear.interface import Interface
from mbcasadi.mpc.linear.parameters import parameters, parameters_of
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.linear.stages import (
    TickSolution,
    end_of_tick,
    shift_bound,
    tick_inputs,
    unbounded_control,
)
from mbcasadi.mpc.lq.sparse import SparseQP, balanced_units, solve_sparse
from mbcasadi.mpc.lq.tick import stage_function
from mbcasadi.qp.solver import infeasible_where


class SparseFunctions(NamedTuple):
    """The Functions of a sparse problem, (measured, ref, z) → their outputs.

    Attributes:
        controller: → (u, z_next, status, flags, residual).
        prediction: → (x, u), NaN where there is no valid plan.
        unknowns: → (w), the solver's solution.
        qp: the QP.
    """

    controller: ca.Function
    prediction: ca.Function
    unknowns: ca.Function
    qp: SparseQP


def sparse_functions(
    name: str,
    problem: LinearProblem,
    forms: tuple[StagewiseForm, CondensedForm],
    interface: Interface,
    *,
    solver: str,
    tolerance: float,
) -> SparseFunctions:
    """Return the controller of a sparse problem, its plan, and its unknowns.

    Args:
        name: of the controller.
        problem: with the states of θ.
        forms: that with states, and the same without, in which infeasibility is proven.
        interface: its measurement and its control.
        solver: one of `SPARSE_SOLVERS`.
        tolerance: bound of each residual for a solution to be accepted.
    """
    (form, condensed), nu = forms, problem.model.nu
    now = tick_inputs(problem, interface, ca.MX, 0)
    theta, valid = parameters(problem, now.inputs.x0, now.inputs.ref, now.past)
    qp = form.qp(theta)
    moves = [i for place in qp.controls for i in range(place.start, place.start + nu)]
    fixed = [*moves, *range(qp.slacks.start, qp.slacks.stop)]
    w, residual = solve_sparse(
        qp, solver, None if form.mechanism is None else balanced_units(qp, fixed)
    )
    rows = least_distance_problem(condensed)
    impossible = _infeasible(rows, theta, ca.logic_not(residual[0] <= tolerance))
    solution = TickSolution(
        u=w[:nu, 0],
        otherwise=unbounded_control(problem, theta),
        e=ca.fabs(w[qp.slacks, 0]),
        residual=residual,
        flag=ca.if_else(impossible, SolverFlag.INFEASIBLE, SolverFlag.STOPPED),
        valid=valid,
        active=ca.MX(0, 1),
    )
    outputs = end_of_tick(now, solution, tolerance, condensed)
    optimal = outputs["status"] <= Status.SUBOPTIMAL
    plan = form.plan(qp, w, theta[parameters_of(problem).x0])
    x_plan, u_plan = interface.plan(*(ca.if_else(optimal, part, np.nan) for part in plan))
    return SparseFunctions(
        stage_function(name, now.symbols, outputs),
        stage_function("prediction", now.symbols, {"x": x_plan, "u": u_plan}),
        stage_function("unknowns", now.symbols, {"w": w}),
        qp,
    )


def _infeasible(rows: LeastDistanceProblem, theta: ca.MX, doubted: ca.MX) -> ca.MX:
    """Return whether a solution is doubted, and it is proven that there is none."""
    shift = ca.DM(rows.E) @ theta
    lba, uba = (shift_bound(bound, shift) for bound in (rows.l_0, rows.u_0))
    return infeasible_where(doubted, ca.sparsify(ca.DM(rows.A)), lba, uba)
