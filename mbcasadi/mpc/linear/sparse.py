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
    CondensedProblem,
    LeastDistanceProblem,
    least_distance_problem,
    unknowns_of,
)
from mbcasadi.mpc.linear.interface import Interface
from mbcasadi.mpc.linear.model import Array
from mbcasadi.mpc.linear.prediction import columns_of, parameters
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.linear.sparse_form import SparseProblem
from mbcasadi.mpc.linear.stages import (
    TickSolution,
    end_of_tick,
    shift_bound,
    tick_inputs,
    unbounded_control,
)
from mbcasadi.mpc.lq.tick import stage_function
from mbcasadi.qp.solver import SPARSE_SOLVERS, infeasible_where

ROUNDS = 20
"""Rounds of scaling; each halves the orders of magnitude between entries."""


class SparseFunctions(NamedTuple):
    """The Functions of a sparse problem.

    Attributes:
        controller: (measured, ref, z) → (u, z_next, status, flags, residual).
        prediction: (measured, ref, z) → (x, u), NaN where there is no valid plan.
        unknowns: (measured, ref, z) → (w), the solver's solution.
    """

    controller: ca.Function
    prediction: ca.Function
    unknowns: ca.Function


def sparse_functions(
    name: str,
    problem: LinearProblem,
    forms: tuple[SparseProblem, CondensedProblem],
    interface: Interface,
    *,
    solver: str,
    tolerance: float,
) -> SparseFunctions:
    """Return the controller of a sparse problem, its plan, and its unknowns.

    Args:
        name: of the controller.
        problem: with the states of θ.
        forms: the QP with states, and the same without, in which infeasibility is proven.
        interface: its measurement and its control.
        solver: one of `SPARSE_SOLVERS`.
        tolerance: bound of each residual for a solution to be accepted.
    """
    (sparse, condensed), nu = forms, problem.model.nu
    now = tick_inputs(problem, interface, ca.MX, 0)
    theta, valid = parameters(problem, now.inputs.x0, now.inputs.ref, now.past)
    w, residual = _solve(sparse, theta, solver, unknowns_of(problem))
    rows = least_distance_problem(condensed)
    impossible = _infeasible(rows, theta, ca.logic_not(residual[0] <= tolerance))
    solution = TickSolution(
        u=w[:nu, 0],
        otherwise=unbounded_control(problem, theta),
        e=w[problem.moves * nu : unknowns_of(problem), 0],
        residual=residual,
        flag=ca.if_else(impossible, SolverFlag.INFEASIBLE, SolverFlag.STOPPED),
        valid=valid,
        active=ca.MX(0, 1),
    )
    outputs = end_of_tick(now, solution, tolerance, condensed)
    maps, none = sparse.prediction, ca.MX.zeros(theta.shape)
    x_plan, u_plan = (columns_of(part, w, none) for part in (maps.x, maps.u))
    optimal = outputs["status"] <= Status.SUBOPTIMAL
    plan = ca.DM(np.linalg.pinv(maps.lift)) @ x_plan, u_plan
    x_plan, u_plan = interface.plan(*(ca.if_else(optimal, part, np.nan) for part in plan))
    return SparseFunctions(
        stage_function(name, now.symbols, outputs),
        stage_function("prediction", now.symbols, {"x": x_plan, "u": u_plan}),
        stage_function("unknowns", now.symbols, {"w": w}),
    )


def _infeasible(rows: LeastDistanceProblem, theta: ca.MX, doubted: ca.MX) -> ca.MX:
    """Return whether a solution is doubted, and it is proven that there is none."""
    shift = ca.DM(rows.E) @ theta
    lba, uba = (shift_bound(bound, shift) for bound in (rows.l_0, rows.u_0))
    return infeasible_where(doubted, ca.sparsify(ca.DM(rows.A)), lba, uba)


def _solve(sparse: SparseProblem, theta: ca.MX, solver: str, moves: int) -> tuple[ca.MX, ca.MX]:
    """Return (w, residual), residuals of the scaled QP; the first `moves` of w are kept.

    Accelerations of a joint with a stiff servo are 1e6 times its angle: unscaled, they hide the
    errors of the controls.
    """
    qp = sparse.qp
    plain = np.ones(len(qp.H)), np.ones(len(sparse.E))
    unit, row = _units(qp.H, sparse.E, moves) if sparse.forces else plain
    scale = ca.DM(unit)
    g = scale * (ca.DM(qp.G) @ theta + ca.DM(qp.g_0))
    equal = -ca.DM(row) * (ca.DM(sparse.E_theta) @ theta + ca.DM(sparse.e_0))
    shift = ca.DM(qp.D) @ theta + ca.DM(qp.c_0)
    scaled = unit[:, None] * qp.H * unit, np.vstack([row[:, None] * sparse.E, qp.C]) * unit
    H, A = (ca.sparsify(ca.DM(part)) for part in scaled)
    lower, upper = (ca.vertcat(equal, shift_bound(bound, shift)) for bound in (qp.lower, qp.upper))
    ends = [ca.vertcat(equal, ca.DM(bound) - shift) for bound in (qp.lower, qp.upper)]
    pattern = {"h": H.sparsity(), "a": A.sparsity()}
    conic = ca.conic("horizon", solver, pattern, SPARSE_SOLVERS[solver] | {"error_on_fail": False})
    solution = conic(h=H, g=g, a=A, lba=ends[0], uba=ends[1])
    w, lam = solution["x"], _at_bounds(sparse, solution["lam_a"])
    above, below, size = A @ w - upper, lower - A @ w, 1 + ca.norm_2(w)
    residual = ca.vertcat(
        ca.norm_2(ca.fmax(above, 0) + ca.fmax(below, 0)) / size,
        ca.norm_2(H @ w + g + A.T @ lam) / (size + ca.norm_2(g)),
        ca.sum1(ca.fabs(lam * ca.if_else(lam > 0, above, below))) / size**2,
    )
    return scale * w, residual


def _units(H: Array, E: Array, moves: int) -> tuple[Array, Array]:
    """Return units of unknowns and factors of the rows E, in which entries are near one.

    Each round divides by the root of the largest entry of a row or column [D. Ruiz,
    RAL-TR-2001-034, 2001]. The first `moves` unknowns keep their unit.
    """
    unit, row = np.ones(len(H)), np.ones(len(E))
    for _ in range(ROUNDS):
        coupled = row[:, None] * E * unit
        row /= np.sqrt(np.abs(coupled).max(axis=1))
        both = np.vstack([unit[:, None] * H * unit, coupled])
        unit[moves:] /= np.sqrt(np.abs(both).max(axis=0))[moves:]
    return unit, row


def _at_bounds(sparse: SparseProblem, lam: ca.MX) -> ca.MX:
    """Return the multipliers with those of infinite bounds, rounding errors, set to zero."""
    equal, ends = np.ones(len(sparse.E)), (sparse.qp.upper, sparse.qp.lower)
    up, down = (ca.DM(np.concatenate([equal, np.isfinite(end)])) for end in ends)
    return up * ca.fmax(lam, 0) + down * ca.fmin(lam, 0)
