"""Optimal control of a mechanism on its constraint manifold: from parts to data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.task import Slot, Task
from mbcasadi.control.tick.part import Part
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.integrators.manifold_step import require_no_activation
from mbcasadi.mpc.integrators.semi_implicit import (
    SemiImplicitStep,
    derivatives_fun,
    motion_fun,
    semi_implicit_fun,
)
from mbcasadi.mpc.integrators.step import discrete_dynamics, require_horizon
from mbcasadi.mpc.integrators.step_options import DEFAULT_STEP, StepOptions
from mbcasadi.mpc.ocp.constraints import penalties_of
from mbcasadi.mpc.ocp.contact_landing import ContactLanding
from mbcasadi.mpc.ocp.contact_schedule import ContactSchedule
from mbcasadi.mpc.ocp.cost import TaskCost
from mbcasadi.mpc.ocp.motion_form import motion_form
from mbcasadi.mpc.ocp.problem import STEP, Array, OptimalControlProblem, sample_times
from mbcasadi.mpc.ocp.stage import Stage, StageMotion, StageSymbols, slots_of, stage_symbols
from mbcasadi.mpc.ocp.stage_bounds import ActuatorBounds
from mbcasadi.mpc.ocp.stage_limits import StageLimits
from mbcasadi.mpc.ocp.stage_part import FREE, StagePart, StageTerms
from mbcasadi.qp.rows import Bounded
from mbcasadi.shapes import bounds, real_array
from mbcasadi.system import System

ProblemPart = StagePart | Part | Task | Bounded
"""What an optimal control problem is made of."""


@checked
def optimal_control_problem(
    system: System,
    horizon: int,
    period: float | Sequence[float],
    parts: Sequence[ProblemPart],
    *,
    symbols: StageSymbols | None = None,
    step: StepOptions | SemiImplicitStep = DEFAULT_STEP,
    tunable: Sequence[str] = (),
    name: str = "ocp",
) -> OptimalControlProblem:
    """Return the optimal control problem of a mechanism on its constraint manifold.

    The state is x = (q, v), or (q, v, u_last) where changes of the control are weighted or bounded.
    Weights of stages count per second, and the solution hardly changes with the period. References,
    masks, own parameters and those of the system (`physical`) are slices of p, one p for each
    sample. The model's ranges of controls and actuator forces hold without being named.

    Args:
        system: the mechanism.
        horizon: number of intervals N.
        period: length of one, s; or of each, N lengths. Then p has them, as its slice `step`, and
            these are nominal: other ones may be given with each p. Costs, changes of controls and
            what a step takes back of a gap follow them; prices of `Bounded` rows count by sample.
        parts: in any order,

            - costs: `Cost(Q=, R=, Q_end=, S=, residual=, terminal=)`, and tasks of inverse
              dynamics, `½ Σ w |(kp e, kd ė)|²` per second;
            - limits of inverse dynamics that bound q and v (`JointLimits`, `DistanceLimits`,
              `HalfSpace`, `AngularMomentumLimit`), at all samples but the given one;
            - `StageBounds(u=, du=, q=, v=)`;
            - `Bounded(value, lower, upper)`: rows of q, v, u at every sample but the last, or
              `at_end` of q, v at the last one, hard or soft. A row of q and v alone also bounds x0,
              which is given: from an x0 that violates it there is no solution. A real-time
              iteration applies such a row from the next sample on. On a manifold, fix independent
              coordinates at the end and not all of q: rows that repeat the loops have no unique
              multipliers;
            - `ContactSchedule(closing=, depth=, not_below=)` of a system with a mask, or
              `ContactLanding(contacts, ...)`;
            - `Disturbance()`: a force that the model lacks, the slice `disturbance` of p.
        symbols: those of the expressions in parts; see `stage_symbols`.
        step: options of the integrator: `StepOptions(order=, substeps=, newton=, ...)`, or
            `SemiImplicitStep()`.
        tunable: what may change without a new problem, as the slice `tuning` of p, the input
            `tuning` of a real-time iteration: "weights", "gains" of tasks, "friction" of
            `ContactCones`, "limits"; see `stage_tuning.py`.
        name: a C identifier.

    Raises:
        ProblemError: an invalid horizon, period or number of lengths, an indefinite weight, empty
            bounds, a negative penalty, no cost, a part of inverse dynamics that bounds no state.
        ShapeError: a wrong shape, an expression of other symbols.
    """
    N, stepped = require_horizon(horizon), system
    first, lengths = _lengths(N, period)
    h = first if lengths is None else None
    stage_parts = _stage_parts(parts, first)
    disturbed = any(part.disturbs for part in stage_parts)
    if disturbed and any(part.has_forces for part in stage_parts):
        raise ProblemError(f"{name}: StageForces has no disturbance; give its law an observer")
    if isinstance(step, SemiImplicitStep):
        stepped = step.system(system, h)
        motion = partial(motion_fun, stepped, step.treatment(h), disturbed=disturbed)
    elif disturbed:
        raise ProblemError(f"{name}: a Disturbance is a force of step=SemiImplicitStep(); give it")
    else:
        motion = partial(motion_fun, system, step.treatment)
        require_no_activation(system)
    variables = stage_symbols(system) if symbols is None else symbols
    of_parts = [slot for part in stage_parts for slot in part.slots(system)]
    of_parts += [] if lengths is None else [Slot(STEP, (STEP,), ("s",))]
    slots = slots_of(system, any(part.has_setpoint for part in stage_parts), of_parts, variables)
    unknowns = [name for part in stage_parts for name in part.unknowns(system)]
    has_changes = any(part.has_changes for part in stage_parts)
    steps = StageMotion(motion, stepped.at_end, disturbed, first, lengths is not None)
    stage = Stage(system, slots, variables, has_changes, unknowns, steps, tunable)
    terms = [part.terms(stage) for part in stage_parts]
    stage.close_tuning()
    root = np.sqrt(first) if lengths is None else ca.sqrt(stage.step)
    running = [root * r for each in terms for r in each.running]
    of_changes = [r for each in terms for r in each.changes]
    running += of_changes if lengths is None else [r / ca.sqrt(stage.length) for r in of_changes]
    ending = [r for each in terms for r in each.ending]
    if not running and not ending:
        raise ProblemError(f"{name}: no cost; expected a Cost or tasks among the parts")
    path, end = _stack_rows(terms, at_end=False), _stack_rows(terms, at_end=True)
    of_u = _within("u inside the model's ctrlrange", [x.u_bounds for x in terms], system.nu)
    nominal = {key: value for each in terms for key, value in each.nominal.items()}
    form = None
    if isinstance(step, SemiImplicitStep):
        slopes = derivatives_fun(stepped, step.treatment(h), disturbed=disturbed)
        form = motion_form(stage, slopes, (running, path.values, path.slopes))
    a = next((each.a for each in terms if each.a is not None), None)
    return OptimalControlProblem(
        name=name,
        horizon=N,
        period=first,
        dynamics=stage.dynamics(_interval_fun(system, h, step, motion))
        if a is None
        else stage.dynamics_by(a),
        residual=stage.function("residual", "r", running),
        terminal=stage.function("terminal", "r", ending, last=True),
        path=stage.function("path", "g", path.values),
        path_bounds=path.bounds,
        end=stage.function("end", "g", end.values, last=True),
        end_bounds=end.bounds,
        x_bounds=_within("x", [each.x_bounds for each in terms], stage.x.numel()),
        u_bounds=np.vstack([of_u, np.tile(FREE, (len(unknowns), 1))]),
        slots=stage.slots,
        state=stage.state(),
        nominal=stage.nominal(sample_times(N, first, lengths), nominal),
        lengths=lengths,
        usual={key: value for each in terms for key, value in each.usual.items()},
        path_penalties=path.penalties,
        end_penalties=end.penalties,
        du_bounds=next((x.du_bounds for x in terms if x.du_bounds is not None), None),
        given_rows=tuple(path.given),
        given_bounds=np.array([*path.given.values()]) if path.given else None,
        rest=stage.rest(),
        tracking=stage.tracking(),
        system=stage.system,
        physical=system.parameters,
        tasks=tuple(part for part in parts if isinstance(part, Task)),
        motion=form,
        tuning=tuple(stage.tuning.entries),
        tuning_order=tuple(stage.tuning.ordered),
        landing_rows=next((each.landing_rows for each in terms if each.landing_rows), ()),
        labels=stage.labels() | {"path": path.names, "end": end.names},
    )


def _interval_fun(
    system: System,
    h: float | None,
    step: StepOptions | SemiImplicitStep,
    motion: Callable[[], ca.Function],
) -> ca.Function:
    """Return (x, u, p) → (x_next): one interval of length h, s, an input where h is None."""
    if isinstance(step, SemiImplicitStep):
        return semi_implicit_fun(system, h, motion())
    return discrete_dynamics(system, h, step)


def _lengths(horizon: int, period: float | Sequence[float]) -> tuple[float, Array | None]:
    """Return the period, or the first length and all (N,) of them.

    Raises:
        ProblemError: not positive, or another number of lengths than N.
    """
    lengths = real_array("period", period)
    if lengths.shape not in {(), (horizon,)} or not np.all((lengths > 0) & (lengths < np.inf)):
        raise ProblemError(
            f"period = {period}; expected a positive number of seconds, or {horizon} of them, one "
            "for each interval"
        )
    return float(lengths.ravel()[0]), lengths.copy() if lengths.ndim else None


@dataclass(frozen=True)
class _Row(StagePart):
    """A row of a user."""

    row: Bounded

    def terms(self, stage: Stage) -> StageTerms:  # noqa: ARG002  # the part's
        return StageTerms(rows=[self.row])


def _stage_parts(parts: Sequence[ProblemPart], period: float) -> list[StagePart]:
    """Return the parts as those of a stage, and what holds without being named."""
    stage_parts = list[StagePart]()
    for part in parts:
        if isinstance(part, Task):
            stage_parts.append(TaskCost(part))
        elif isinstance(part, Bounded):
            stage_parts.append(_Row(part))
        elif isinstance(part, StagePart):
            stage_parts.append(part)
    limits = tuple(part for part in parts if isinstance(part, Part))
    stage_parts += [StageLimits(limits, period)] if limits else []
    scheduled = any(isinstance(part, (ContactSchedule, ContactLanding)) for part in stage_parts)
    with_forces = any(part.has_forces for part in stage_parts)
    stage_parts += [] if with_forces else [ActuatorBounds()]
    return [*stage_parts, *([] if scheduled else [ContactSchedule()])]


class _StackedRows(NamedTuple):
    """Rows of all parts, one below the other; `given` are bounds at the given state, by place.

    `slopes` are derivatives of values along tangents, where parts have them.
    """

    values: list[ca.SX]
    bounds: Array
    penalties: Array
    names: tuple[str, ...]
    given: dict[int, tuple[float, float]]
    slopes: list[ca.SX | None]


def _stack_rows(terms: Sequence[StageTerms], *, at_end: bool) -> _StackedRows:
    """Return the rows of the last sample, or of all others."""
    kind, values, names = "end" if at_end else "path", list[ca.SX](), list[str]()
    limits, penalties = [np.empty((0, 2))], [np.empty((0, 2))]
    bounds_given, slopes = dict[int, tuple[float, float]](), list[ca.SX | None]()
    rows = [(i, row, each) for each in terms for i, row in enumerate(each.rows)]
    chosen = [x for x in rows if x[1].at_end == at_end]
    for k, (place, row, each) in enumerate(chosen):
        value = ca.vec(ca.SX(row.value))
        n, name = value.numel(), row.name or f"{kind}[{k}]"
        sides = [
            np.broadcast_to(real_array(name, end).ravel(), n) for end in (row.lower, row.upper)
        ]
        if place in each.given:
            bounds_given |= {len(names) + j: each.given[place] for j in range(n)}
        limits.append(bounds(name, np.column_stack(sides), n))
        penalties.append(penalties_of(name, row.linear_penalty, row.quadratic_penalty, limits[-1]))
        names += [name] if n == 1 else [f"{name}[{j}]" for j in range(n)]
        values.append(value)
        slopes.append(each.slopes.get(place))
    penalty = np.vstack(penalties)
    return _StackedRows(values, np.vstack(limits), penalty, tuple(names), bounds_given, slopes)


def _within(name: str, parts: Sequence[Array | None], size: int) -> Array:
    """Return what is within the bounds (size, 2) of all parts."""
    all_bounds = [np.tile(FREE, (size, 1)), *(each for each in parts if each is not None)]
    low, high = np.moveaxis(np.stack(all_bounds), 2, 0)
    return bounds(name, np.column_stack([low.max(axis=0), high.min(axis=0)]), size)
