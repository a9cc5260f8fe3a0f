"""Linear MPC as a controller: of a plain linear model, or of a mechanism near an equilibrium."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.mpc.linear.condensed import CondensedProblem, condense_problem
from mbcasadi.control.mpc.linear.least_distance_form import least_distance_problem
from mbcasadi.control.mpc.linear.limits import limits_of
from mbcasadi.control.mpc.linear.model import Array, LinearModel
from mbcasadi.control.mpc.linear.plan import parameters_fun, planned_fun
from mbcasadi.control.mpc.linear.problem import LinearProblem, linear_problem
from mbcasadi.control.mpc.linear.sparse import require_sparse_solver, sparse_functions
from mbcasadi.control.mpc.linear.sparse_form import SparseProblem, sparse_problem
from mbcasadi.control.mpc.linear.stages import RESIDUALS, LinearStages
from mbcasadi.control.mpc.linear.violations import Violation, hard_violations, soft_violations
from mbcasadi.control.reference import filled, places_of
from mbcasadi.control.solver import controller_fun, require_solver
from mbcasadi.control.tasks import Slot
from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.errors import ProblemError

SOLVERS = {"condensed": "daqp", "sparse": "proxqp"}
"""The solver of each form by default."""

STATUS_WORDS = (
    "0 solved and verified; 1 feasible, not optimal; 2 infeasible; 3 bad input; 4 failed check; "
    "from 2 on, u is the regulator without bounds, cut to its limits (3: zero within limits)"
)


@dataclass(frozen=True)
class LinearMPC:
    """A linear MPC controller; `export_c` accepts it, and `validate` that of a mechanism.

    Attributes:
        controller: (x0, ref, z) → (u, z_next, status, residual), or with (q, v) in place of x0.
        problem, condensed: the problem with states and without.
        slots: the slices of the reference.
        sparse, unknowns: the QP with states, and the solver's solution of it, (inputs) → (w);
            None in the condensed form.
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
        return places_of(self.slots)

    def ref(self, **values: ArrayLike) -> Array:
        """Return the reference with these slices, zero elsewhere; dots are written as `_`."""
        return filled(self.slots, values)

    def schedule(self, **values: ArrayLike) -> Array:
        """Return the reference of a law with a preview, from one row for each sample 1 … N.

        `schedule(x=(N, nx), u=(nu,))`, of a mechanism `schedule(q=(N, nq), v=(N, nv),
        setpoint_u=(nu,))`; a single row holds at all samples. The default is zero.

        Raises:
            ProblemError: no preview, or a schedule that is shorter or longer than the horizon.
            UnknownNameError, ShapeError: as in `ref`.
        """
        N, given = self.problem.horizon, {}
        if not self.problem.preview:
            raise ProblemError("the law has one setpoint; make it with preview=True for a schedule")
        for name, value in values.items():
            rows = np.asarray(value, dtype=float)
            if name not in {"x", "q", "v"}:
                given[name] = rows
                continue
            rows = np.tile(rows, (N, 1)) if rows.ndim == 1 else rows
            if len(rows) != N:
                raise ProblemError(
                    f"the schedule of {name} has {len(rows)} samples, the horizon {N}; expected "
                    f"one row for each of the samples 1 to {N}, again at each tick"
                )
            given |= {f"{name}{k + 1}": row for k, row in enumerate(rows)}
        return filled(self.slots, given)

    def violations(self, *inputs: ArrayLike) -> tuple[Violation, ...]:
        """Return the bounds that the plan of this tick violates, each with `in_words`.

        Soft rows with the amount of their slack, for example after an unreachable reference or a
        large push. Where hard rows contradict each other (status 2), those that the nearest plan
        violates.

        Args:
            inputs: of the controller, in its order.
        """
        found = soft_violations(self.controller, self.problem, inputs)
        if found is not None:
            return found
        theta = np.array(self.parameters(*inputs)).ravel()
        return hard_violations(self.condensed, theta)


def lti_mpc(
    model: LinearModel,
    horizon: int,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    tolerance: float = 1e-6,
    form: str = "condensed",
    solver: str | None = None,
    name: str = "linear_mpc",
    **options: Any,
) -> LinearMPC:
    """Return the controller of a plain linear model, constant or varying along the horizon.

    Args:
        model, horizon, Q, R, options: as in `linear_problem`.
        tolerance: bound of each residual for a solution to be accepted.
        form: "condensed", whose unknowns are the controls, for C; "sparse", whose unknowns include
            the states, for Python.
        solver: of the Function in Python: "daqp" or "qrqp" for the condensed form, "proxqp",
            "piqp" or "qrqp" for the sparse one; the C export of the condensed form uses DAQP.
        name: a C identifier.

    Raises:
        ProblemError, ShapeError: as in `linear_problem`; an unknown form.
        SolverError: the solver is not available.
    """
    if form not in SOLVERS:
        raise ProblemError(f"form = {form!r}; expected one of {', '.join(map(repr, SOLVERS))}")
    chosen = solver or SOLVERS[form]
    if form == "sparse":
        problem = linear_problem(model, horizon, Q, R, **options)
        return sparse_mpc(problem, sparse_problem(problem), tolerance, chosen, name)
    require_solver(chosen)
    _require_name(name)
    problem = linear_problem(model, horizon, Q, R, **options)
    condensed = condense_problem(problem)
    made = LinearStages(problem, condensed, least_distance_problem(condensed), tolerance)
    stages = made.stages()
    function = controller_fun(name, stages, chosen)
    controller, slots = described(function, stages, problem, condensed)
    prediction = planned_fun(made, stages, function, chosen)
    controller = replace(controller, prediction=prediction)
    return LinearMPC(controller, problem, condensed, slots, parameters_fun(problem, function))


def sparse_mpc(
    problem: LinearProblem, sparse: SparseProblem, tolerance: float, solver: str, name: str
) -> LinearMPC:
    """Return the controller of a problem with states as unknowns.

    Args:
        problem: the problem, in the states of its model.
        sparse: the QP with states as unknowns.
        tolerance, solver, name: as in `lti_mpc`.

    Raises:
        ProblemError, SolverError: as in `lti_mpc`.
    """
    require_sparse_solver(solver)
    _require_name(name)
    functions = sparse_functions(name, problem, sparse, solver, tolerance)
    controller, slots = described(functions.law, None, problem, sparse.qp)
    controller = replace(
        controller,
        prediction=functions.prediction,
        notes=controller.notes | {"equality rows": str(len(sparse.E))},
    )
    condensed = condense_problem(problem)
    parameters = parameters_fun(problem, functions.law)
    return LinearMPC(controller, problem, condensed, slots, parameters, sparse, functions.unknowns)


def reference_slots(problem: LinearProblem, states: Sequence[str]) -> tuple[Slot, ...]:
    """Return the slices of the reference of the state: one, or one for each sample."""
    samples = range(1, problem.horizon + 1) if problem.preview else [None]
    names = ["x" if k is None else f"x{k}" for k in samples]
    return tuple(Slot(name, tuple(states), ("",) * len(states)) for name in names)


def described(
    function: ca.Function,
    stages: LeastDistanceStages | None,
    problem: LinearProblem,
    qp: CondensedProblem,
) -> tuple[Controller, tuple[Slot, ...]]:
    """Return the controller as data, and the slices of its reference.

    Args:
        function: (x0, ref, z) → (u, z_next, status, residual).
        stages: the Functions around the QP solver; None for the sparse form.
        problem: the problem.
        qp: its QP, for sizes and names of rows.
    """
    model = problem.model
    states = tuple(f"x{i}" for i in range(model.nx))
    controls = tuple(f"u{i}" for i in range(model.nu))
    slots = (*reference_slots(problem, states), Slot("u", controls, ("",) * model.nu))
    rows = () if stages is None else tuple(f"active.{row}" for row in qp.names)
    past = ("last", *(f"last{k}" for k in range(2, problem.kept + 1)))[: problem.kept]
    state = rows + tuple(f"{when}.{u}" for when in reversed(past) for u in controls)
    inputs = {"x0": states, "ref": _components(slots), "z": state}
    outputs = {"u": controls, "z_next": state, "status": ("status",), "residual": RESIDUALS}
    controller = Controller(
        name=function.name(),
        function=function,
        inputs=tuple(plain_signal(name, part) for name, part in inputs.items()),
        outputs=tuple(plain_signal(name, part) for name, part in outputs.items()),
        u_min=problem.u_bounds[:, 0],
        u_max=problem.u_bounds[:, 1],
        z0=np.concatenate([qp.resting[: len(rows)], np.zeros(len(state) - len(rows))]),
        period=model.period,
        stages=stages,
        delay=problem.delay,
        limits=limits_of(problem),
        prediction_rows=states,
        notes={
            "law": f"linear MPC, {'sparse' if stages is None else 'condensed'}",
            "horizon": f"{problem.horizon} samples of {model.period:g} s",
            "delay": f"{problem.delay} samples, predicted over",
            "unknowns, rows": f"{qp.H.shape[0]}, {qp.C.shape[0]}",
            "status": STATUS_WORDS,
        },
    )
    return controller, slots


def _require_name(name: str) -> None:
    if not name.isidentifier():
        raise ProblemError(f"name {name!r}; expected a C identifier")


def _components(slots: Sequence[Slot]) -> tuple[str, ...]:
    return tuple(f"{slot.name}.{one}" for slot in slots for one in slot.components)


def plain_signal(name: str, components: tuple[str, ...]) -> Signal:
    """Return a signal without units."""
    return Signal(name, components, ("",) * len(components))
