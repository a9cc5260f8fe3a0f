"""Linear MPC of a plain linear model, and of a mechanism near an equilibrium.

Of a mechanism the unknowns are deviations along the free directions of its constraint manifold, so
loops and redundant rows add no cost, and predictions satisfy them to first order. With multipliers
as unknowns the solution is the same and the problem larger.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.condensing import condense_problem, least_distance_problem
from mbcasadi.mpc.linear.controller import LinearMPC
from mbcasadi.mpc.linear.form import (
    StagewiseForm,
    multiplier_form,
    multipliers_of,
)
from mbcasadi.mpc.linear.interface import Interface, state_interface
from mbcasadi.mpc.linear.mechanism import (
    control_limits,
    deviation_problem,
    mechanism_interface,
    period_of,
)
from mbcasadi.mpc.linear.model import LinearModel, Output, check_outputs
from mbcasadi.mpc.linear.parameters import parameters_fun
from mbcasadi.mpc.linear.problem import LinearOptions, LinearProblem, linear_problem
from mbcasadi.mpc.linear.sparse import sparse_functions
from mbcasadi.mpc.linear.stages import LinearStages
from mbcasadi.mpc.lq.tick import stagewise_controller
from mbcasadi.qp.plugins import require_solver, require_sparse_solver
from mbcasadi.qp.solver import controller_fun
from mbcasadi.shapes import require_choice, require_identifier, weight

SOLVERS = {"condensed": "daqp", "sparse": "proxqp", "multipliers": "proxqp"}
"""The forms of the QP, and the default solver of each."""

SAFE_OUTPUT = (
    "the regulator without bounds, clipped to its limits; after bad input the last command while "
    "it is young, then each actuator holds"
)


@checked
def linear_mpc(linear: Linearization, options: LinearOptions) -> LinearMPC:
    """Return the controller `(q, v, ref, z) → (u, z_next, status, flags, residual)` of a mechanism.

    From a model: `system = mb.read_mjcf(...)`,
    `linear = mb.linearize(system, mb.equilibrium(system))`,
    `linear_mpc(linear, LinearOptions(horizon, Q, R, ...))`.

    Args:
        linear: from `linearize` at an equilibrium.
        options: cost, bounds and horizon, in deviations of all coordinates.

    Raises:
        ProblemError: no equilibrium; invalid weights, bounds, horizon or form.
        ShapeError: a wrong shape, or NaN.
        SolverError: the solver is not available.
    """
    require_choice("form", options.form, tuple(SOLVERS))
    problem = deviation_problem(linear, options)
    interface = mechanism_interface(linear, problem, control_limits(linear, options))
    if options.form != "multipliers":
        return controller_of(problem, interface, options, "linear_mpc")
    size = 2 * linear.system.nv
    rows = check_outputs(options.outputs, size, linear.nu)
    mechanism = multipliers_of(linear, period_of(options))

    def natural(form: StagewiseForm) -> StagewiseForm:
        return multiplier_form(form, mechanism, weight("Q", options.Q, size), rows)

    return controller_of(problem, interface, options, "linear_mpc", natural)


@checked
def lti_mpc(model: LinearModel, options: LinearOptions) -> LinearMPC:
    """Return the controller `(x0, ref, z) → (u, z_next, status, flags, residual)` of a plain model.

    Args:
        model: constant or varying along the horizon.
        options: cost, bounds and horizon.

    Raises:
        ProblemError, ShapeError: as in `linear_problem`; an unknown form; a period.
        SolverError: the solver is not available.
    """
    require_choice("form", options.form, tuple(SOLVERS))
    require_plain(options)
    if options.form == "multipliers":
        raise ProblemError(
            'form = "multipliers" needs the constraints of a mechanism; expected "condensed" or '
            '"sparse", or linear_mpc'
        )
    problem = linear_problem(model, options)
    interface = state_interface(problem, "x0", [f"x{i}" for i in range(model.nx)])
    return controller_of(problem, interface, options, "linear_mpc")


def require_plain(options: LinearOptions) -> None:
    """Raise `ProblemError` where the options of a plain model have a period."""
    if options.period is not None:
        raise ProblemError(
            f"period = {options.period}: a plain model has a sample time of its own; expected none "
            "in the options"
        )


def controller_of(
    problem: LinearProblem,
    interface: Interface,
    options: LinearOptions,
    default_name: str,
    with_states: Callable[[StagewiseForm], StagewiseForm] = lambda form: form,
) -> LinearMPC:
    """Return the controller of a problem.

    Args:
        problem: cost, horizon and bounds.
        interface: its measurement and its control.
        options: form of the QP, solver, tolerance and name.
        default_name: the name where the options have none.
        with_states: the form with states as unknowns, of that without multipliers.

    Raises:
        ProblemError: a name that is no C identifier.
        SolverError: the solver is not available.
    """
    name, solver = options.name or default_name, options.solver or SOLVERS[options.form]
    is_condensed, tolerance = options.form == "condensed", options.tolerance
    (require_solver if is_condensed else require_sparse_solver)(solver)
    require_identifier("name", name)
    condensed, qp = condense_problem(problem), None
    size = condensed.H.shape[0], condensed.C.shape[0]
    forces: tuple[slice, ...] = ()
    if is_condensed:
        rows = least_distance_problem(condensed)
        linear_stages = LinearStages(problem, condensed, rows, interface, tolerance)
        stages, unknowns = linear_stages.stages(), None
        function = controller_fun(name, stages, solver)
        prediction = linear_stages.prediction(stages, function, solver)
        active = tuple(f"active.{row}" for row in condensed.names)
    else:
        form, stages, active = with_states(condensed.form), None, ()
        function, prediction, unknowns, qp = sparse_functions(
            name, problem, (form, condensed), interface, solver=solver, tolerance=tolerance
        )
        size, forces = (qp.H.shape[0], qp.C.shape[0]), tuple(form.forces(qp))
    pending = [f"last{k}" if k > 1 else "last" for k in range(problem.past_controls, 0, -1)]
    past = tuple(f"{when}.u{i}" for when in pending for i in range(problem.model.nu))
    safe = interface.hold.safe
    own = (*active, *past, *interface.estimates)
    starts = (
        condensed.resting[: len(active)],
        np.zeros(len(past)),
        interface.first_estimate,
        safe.z0,
    )
    estimated = ", with an estimated disturbance" if interface.estimates else ""
    kind = "condensed" if is_condensed else "sparse"
    equalities = {} if qp is None else {"equality rows": str(qp.E.shape[0])}
    controller = stagewise_controller(
        function,
        interface.signals((*own, *(f"safe.{component}" for component in safe.components))),
        interface.control,
        safe,
        np.concatenate(starts),
        {
            "law": f"linear MPC, {kind}{estimated}",
            "horizon": f"{problem.horizon} samples of {problem.model.period:g} s",
            "delay": f"{problem.delay} samples, predicted over",
            "unknowns, rows": f"{size[0]}, {size[1]}",
            "safe output": SAFE_OUTPUT,
        },
        stages,
    )
    return LinearMPC(
        controller=replace(
            controller,
            u_min=interface.u_limits[:, 0],
            u_max=interface.u_limits[:, 1],
            delay=problem.delay,
            limits=interface.limits,
            prediction=prediction,
            prediction_rows=interface.plan_rows,
            emergency=safe.emergency(len(own), send=interface.send),
            notes=dict(controller.notes) | equalities,
            **interface.described,
        ),
        problem=problem,
        condensed=condensed,
        slots=interface.slots,
        rest=interface.rest,
        parameters=parameters_fun(problem, interface, len(active)),
        sparse=qp,
        forces=forces,
        unknowns=unknowns,
    )


@checked
def deviation_output(
    linear: Linearization,
    name: str,
    row: ArrayLike,
    lower: float = -np.inf,
    upper: float = np.inf,
    *,
    linear_penalty: float = 0.0,
    quadratic_penalty: float = 0.0,
) -> Output:
    """Return `lower <= row (δq, δv) <= upper`, soft where it has a penalty.

    Args:
        linear: the linear system.
        name: of the row.
        row: (2 nv,) coefficients of δq, then δv.
        lower, upper: bounds of the deviation.
        linear_penalty, quadratic_penalty: ρ₁, ρ₂ of a violation.
    """
    C = np.asarray(row, dtype=float).reshape(1, -1)
    ends = np.array([lower], dtype=float), np.array([upper], dtype=float)
    D = np.zeros((1, linear.nu))
    return Output(name, C, D, *ends, linear_penalty, quadratic_penalty)
