"""Linear MPC as a controller, made once from a problem and its interface."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.tasks.reference import fill_reference, slot_slices
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Controller, LeastDistanceStages
from mbcasadi.description.status import QP_STATUS
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.condensing import CondensedProblem, condense_problem
from mbcasadi.mpc.linear.interface import Interface
from mbcasadi.mpc.linear.planned_trajectory import parameters_fun, prediction_fun
from mbcasadi.mpc.linear.prediction_model import Array
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.linear.sparse import sparse_functions
from mbcasadi.mpc.linear.sparse_form import SparseProblem
from mbcasadi.mpc.linear.stages import LinearStages
from mbcasadi.mpc.linear.violations import Violation, hard_violations, soft_violations
from mbcasadi.mpc.linear.whitened_problem import least_distance_problem
from mbcasadi.qp.kkt_residuals import QP_RESIDUALS
from mbcasadi.qp.solver import controller_fun, require_solver, require_sparse_solver
from mbcasadi.shapes import real_array, require_choice, require_identifier
from mbcasadi.system.coordinates import unitless_signal

SOLVERS = {"condensed": "daqp", "sparse": "proxqp", "multipliers": "proxqp"}
"""The forms of the QP, and the default solver of each."""

SAFE_OUTPUT = (
    "the regulator without bounds, clipped to its limits; after bad input the last command while "
    "it is young, then each actuator holds"
)


@dataclass(frozen=True)
class LinearMPC:
    """A linear MPC controller; `export_c` accepts it, and `validate` that of a mechanism.

    Attributes:
        controller: (x0, ref, z) → (u, z_next, status, flags, residual), or with (q, v) in place of
            x0.
        problem, condensed: the problem with states and without.
        slots: the slices of the reference.
        sparse, unknowns: the problem with states, and its solution, (inputs) → (w); None in the
            condensed form.
        parameters: (inputs) → (θ) of the condensed problem.
    """

    controller: Controller
    problem: LinearProblem
    condensed: CondensedProblem
    slots: tuple[Slot, ...]
    parameters: ca.Function
    sparse: SparseProblem | None = None
    unknowns: ca.Function | None = None

    @property
    def function(self) -> ca.Function:
        """The controller as one named Function."""
        return self.controller.function

    @property
    def reference(self) -> dict[str, slice]:
        """Slice of the reference by its slot's name."""
        return slot_slices(self.slots)

    def ref(self, **values: ArrayLike) -> Array:
        """Return the reference with these slices, zero elsewhere; dots are written as `_`."""
        return fill_reference(self.slots, values)

    def schedule(self, **values: ArrayLike) -> Array:
        """Return the reference of a law with a preview, from one row for each sample 1 … N.

        `schedule(x=(N, nx), u=(nu,))`, of a mechanism `schedule(q=(N, nq), v=(N, nv),
        setpoint_u=(nu,))`; a single row holds at all samples. The default is zero.

        Raises:
            ProblemError: no preview, or a schedule that is shorter or longer than the horizon.
            UnknownNameError, ShapeError: as in `ref`.
        """
        N, entries = self.problem.horizon, {}
        if not self.problem.preview:
            raise ProblemError("the law has one setpoint; make it with preview=True for a schedule")
        for name, value in values.items():
            rows = real_array(name, value)
            if name not in {"x", "q", "v"}:
                entries[name] = rows
                continue
            rows = np.tile(rows, (N, 1)) if rows.ndim == 1 else rows
            if len(rows) != N:
                raise ProblemError(
                    f"the schedule of {name} has {len(rows)} samples, the horizon {N}; expected "
                    f"one row for each of the samples 1 to {N}, again at each tick"
                )
            entries |= {f"{name}{k + 1}": row for k, row in enumerate(rows)}
        return fill_reference(self.slots, entries)

    def violations(self, *inputs: ArrayLike) -> tuple[Violation, ...]:
        """Return the bounds that the plan of this step violates, each with `in_words`.

        Soft rows with the amount of their slack, for example after an unreachable reference or a
        large push. Where hard rows contradict each other (status 2), those of the nearest plan.

        Args:
            inputs: of the controller, in its order.
        """
        violations = soft_violations(self.controller, self.problem, inputs)
        if violations is not None:
            return violations
        theta = np.array(self.parameters(*inputs)).ravel()
        return hard_violations(self.condensed, theta)


def condensed_mpc(
    problem: LinearProblem, interface: Interface, *, solver: str, tolerance: float, name: str
) -> LinearMPC:
    """Return the controller whose unknowns are the controls.

    Args:
        problem: cost, horizon and bounds.
        interface: its measurement and its control.
        solver: of the Function in Python; the C export uses DAQP.
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
    functions = sparse_functions(
        name, problem, sparse, interface, solver=solver, tolerance=tolerance
    )
    controller = _controller(
        functions.controller, None, functions.prediction, interface, problem, sparse.qp, "sparse"
    )
    controller.notes["equality rows"] = str(len(sparse.E))
    return LinearMPC(
        controller=controller,
        problem=problem,
        condensed=condense_problem(problem),
        slots=interface.slots,
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
