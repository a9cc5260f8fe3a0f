"""From a problem of linear MPC and its interface to a controller, in each form of the QP."""

import casadi as ca
import numpy as np

from mbcasadi.description import Controller, LeastDistanceStages
from mbcasadi.description.status import QP_STATUS
from mbcasadi.mpc.linear.condensing import CondensedProblem, condense_problem
from mbcasadi.mpc.linear.controller import LinearMPC
from mbcasadi.mpc.linear.interface import Interface
from mbcasadi.mpc.linear.planned_trajectory import parameters_fun, prediction_fun
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.linear.sparse import sparse_functions
from mbcasadi.mpc.linear.sparse_form import SparseProblem
from mbcasadi.mpc.linear.stages import LinearStages
from mbcasadi.mpc.linear.whitened_problem import least_distance_problem
from mbcasadi.qp.kkt_residuals import QP_RESIDUALS
from mbcasadi.qp.solver import controller_fun, require_solver, require_sparse_solver
from mbcasadi.shapes import require_choice, require_identifier
from mbcasadi.system.coordinates import unitless_signal

SOLVERS = {"condensed": "daqp", "sparse": "proxqp", "multipliers": "proxqp"}
"""The forms of the QP, and the default solver of each."""

SAFE_OUTPUT = (
    "the regulator without bounds, clipped to its limits; after bad input the last command while "
    "it is young, then each actuator holds"
)


def condensed_mpc(
    problem: LinearProblem, interface: Interface, *, solver: str, tolerance: float, name: str
) -> LinearMPC:
    """Return the controller whose unknowns are the controls.

    Args:
        problem: cost, horizon and bounds.
        interface: its measurement and its control.
        solver: of the Function in Python; the C has its own.
        tolerance: bound of each residual for a solution to be accepted.
        name: a C identifier.

    Raises:
        ProblemError: a name that is no C identifier.
        SolverError: the solver is not available.
    """
    require_solver(solver)
    require_identifier("name", name)
    condensed = condense_problem(problem)
    linear_stages = LinearStages(
        problem, condensed, least_distance_problem(condensed), interface, tolerance
    )
    stages = linear_stages.stages()
    function = controller_fun(name, stages, solver)
    return LinearMPC(
        controller=_controller(
            function,
            stages,
            prediction_fun(linear_stages, stages, function, solver),
            interface,
            problem,
            condensed,
            "condensed",
        ),
        problem=problem,
        condensed=condensed,
        slots=interface.slots,
        rest=interface.rest,
        parameters=parameters_fun(problem, interface, linear_stages.m),
    )


def sparse_mpc(
    problem: LinearProblem,
    sparse: SparseProblem,
    interface: Interface,
    *,
    solver: str,
    tolerance: float,
    name: str,
) -> LinearMPC:
    """Return the controller of a problem with states as unknowns, for Python.

    Args:
        problem, interface, solver, tolerance, name: as in `condensed_mpc`.
        sparse: the QP with states, or with accelerations and multipliers.

    Raises:
        ProblemError, SolverError: as in `condensed_mpc`.
    """
    require_sparse_solver(solver)
    require_identifier("name", name)
    condensed = condense_problem(problem)
    rows = least_distance_problem(condensed)
    functions = sparse_functions(
        name, problem, sparse, rows, interface, solver=solver, tolerance=tolerance
    )
    controller = _controller(
        functions.controller, None, functions.prediction, interface, problem, sparse.qp, "sparse"
    )
    controller.notes["equality rows"] = str(len(sparse.E))
    return LinearMPC(
        controller=controller,
        problem=problem,
        condensed=condensed,
        slots=interface.slots,
        rest=interface.rest,
        parameters=parameters_fun(problem, interface, 0),
        sparse=sparse,
        unknowns=functions.unknowns,
    )


def solver_of_form(form: str, solver: str | None) -> str:
    """Return the solver of a form of the QP, its default one unless given.

    Raises:
        ProblemError: no such form.
    """
    require_choice("form", form, tuple(SOLVERS))
    return solver or SOLVERS[form]


def _controller(
    function: ca.Function,
    stages: LeastDistanceStages | None,
    prediction: ca.Function,
    interface: Interface,
    problem: LinearProblem,
    qp: CondensedProblem,
    form: str,
) -> Controller:
    """Return the controller as data."""
    rows = () if stages is None else tuple(f"active.{row}" for row in qp.names)
    pending = [f"last{k}" if k > 1 else "last" for k in range(problem.past_controls, 0, -1)]
    past = tuple(f"{when}.u{i}" for when in pending for i in range(problem.model.nu))
    safe = interface.hold.safe
    remembered = tuple(f"safe.{name}" for name in safe.components)
    z = (*rows, *past, *interface.estimates, *remembered)
    estimated = ", with an estimated disturbance" if interface.estimates else ""
    return interface.complete(
        Controller(
            name=function.name(),
            function=function,
            inputs=interface.signals(z),
            outputs=(
                interface.control,
                unitless_signal("z_next", z),
                unitless_signal("status", ("status",)),
                unitless_signal("flags", ("flags",)),
                unitless_signal("residual", QP_RESIDUALS),
            ),
            u_min=interface.u_limits[:, 0],
            u_max=interface.u_limits[:, 1],
            z0=np.concatenate(
                [
                    qp.resting[: len(rows)],
                    np.zeros(len(past)),
                    interface.first_estimate,
                    safe.z0,
                ]
            ),
            period=problem.model.period,
            stages=stages,
            delay=problem.delay,
            limits=interface.limits,
            prediction=prediction,
            prediction_rows=interface.plan_rows,
            emergency=safe.emergency(len(z) - len(remembered), send=interface.send),
            notes={
                "law": f"linear MPC, {form}{estimated}",
                "horizon": f"{problem.horizon} samples of {problem.model.period:g} s",
                "delay": f"{problem.delay} samples, predicted over",
                "unknowns, rows": f"{qp.H.shape[0]}, {qp.C.shape[0]}",
                "status": QP_STATUS.summary(SAFE_OUTPUT),
            },
        )
    )
