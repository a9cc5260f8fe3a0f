"""The stages of one control step, split where the QP solver is called: build, solve, finish.

`build` assembles the problem, condenses and whitens it; `finish` recovers the actuator forces,
clips them to their ranges, computes the residuals and chooses the output. Both are scalar
expressions (SX): a fixed sequence of operations, without branches or loops that depend on data.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed
from mbcasadi.control.inverse_dynamics.condensed_problem import CondensedProblem, condensed_problem
from mbcasadi.control.inverse_dynamics.fallback import offered_hold, safe_output_of
from mbcasadi.control.inverse_dynamics.finish import FinishStage, carried_values
from mbcasadi.control.inverse_dynamics.inputs import guard_inputs, input_symbols, with_active_set
from mbcasadi.control.inverse_dynamics.notices import noticed
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.posed import Posed, has_loops, no_force
from mbcasadi.control.inverse_dynamics.priorities.cascade import Cascade, pack_passed, starts
from mbcasadi.control.inverse_dynamics.priorities.judge import LevelJudge
from mbcasadi.control.inverse_dynamics.priorities.last_level import LastLevel
from mbcasadi.control.inverse_dynamics.priorities.levels import (
    level_values,
    levels_of,
    unit_coordinates,
)
from mbcasadi.control.inverse_dynamics.problem import Problem, assemble_problem
from mbcasadi.control.inverse_dynamics.scales import ProblemScales
from mbcasadi.control.inverse_dynamics.scaling import measure_problem
from mbcasadi.control.inverse_dynamics.softened import scales_of_all, soften
from mbcasadi.control.inverse_dynamics.task_stack import TaskStack
from mbcasadi.control.limits.actuator_ranges import joint_sums
from mbcasadi.control.limits.soft_limits import soft_rows
from mbcasadi.control.safe_output.safe_output import SafeOutput
from mbcasadi.control.tick.columns import pack
from mbcasadi.control.tick.instant import Instant
from mbcasadi.description.qp_stages import UNBOUNDED, LeastDistanceStages
from mbcasadi.linalg.scalars import in_scalars, lifted
from mbcasadi.qp.quadratic_cones import warm_values
from mbcasadi.qp.rows import Row, Rows
from mbcasadi.qp.whitening import LeastDistance, Whitened, shift_bounds
from mbcasadi.system.actuator_model import ActuatorModel, actuator_model

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stages:
    """The stages, and the sizes that follow from them.

    Attributes:
        qp: `build` and `finish`.
        about: what each inequality is.
        u_min, u_max: (nu,) limits that the control never leaves.
        nw: number of slacks and internal forces.
        scales: the units of the problem.
        safe: the output of a tick without a solution.
        finish_from_carry: (carry, x, lam_a, active, flag) → the controller's outputs, for a
            controller that is a part of another one; None where the safe output reads inputs, or
            with levels.
        unknowns: (carry, passed, x) → y of a controller with levels, else None.
    """

    qp: LeastDistanceStages
    about: tuple[Row, ...]
    u_min: Array
    u_max: Array
    nw: int
    scales: ProblemScales
    safe: SafeOutput
    finish_from_carry: ca.Function | None
    unknowns: ca.Function | None = None

    @property
    def row_names(self) -> tuple[str, ...]:
        """Name of each inequality."""
        return tuple(row.name for row in self.about)


def make_stages(setup: Setup, *, loops: bool | None = None) -> Stages:
    """Return the build and finish Functions of a controller.

    Args:
        setup: the options.
        loops: whether products and factors of matrices become loops in C; by default where
            there are many operations in them.
    """
    symbols = input_symbols(setup, None)
    at, valid = guard_inputs(setup, symbols)
    problem = assemble_problem(setup, at)
    scales = measure_problem(setup, symbols, problem)
    problem = soften(problem, setup.soft, at.tuning, scales)
    scales = scales_of_all(scales, problem.rows.about, setup.soft, problem.rows.cones)
    hold = offered_hold(setup, at, problem, scales)
    limits = control_limits(setup, untuned_actuators(setup, at, problem))
    safe = safe_output_of(setup, symbols, hold, no_force(problem.actuators), limits)
    m = len(problem.rows.about)
    symbols["z"] = with_active_set(setup, symbols["z"], m)
    offered = hold if setup.safe_output_kind == "safe" else {}
    own = _without_reports(setup, problem)
    bits = noticed(setup, at)
    posed = Posed(own, valid, at.accepted, offered, bits, cannot_be_kept(setup, at))
    arguments = symbols
    late = problem.late
    if late or setup.levels or (has_loops(problem) if loops is None else loops):
        posed, arguments = lifted("terms", symbols, posed, late)
    qp = condensed_problem(setup, posed.problem, scales)
    if setup.levels:
        return _level_stages(setup, symbols, arguments, qp, posed, safe, limits)
    A_qp, lba, uba = least_distance(setup, qp)
    carry, layout = pack(carried_values(setup, qp, posed))
    cones = problem.rows.cones

    def start(given: dict[str, ca.SX]) -> list[ca.SX]:
        """Return the active set that the solver starts from."""
        return [warm_values(given["z"], cones)]

    build = ca.Function(
        "build",
        list(arguments.values()),
        [A_qp, lba, uba, *in_scalars("start", start, {"z": arguments["z"][:m, 0]}), carry],
        list(arguments),
        ["A_qp", "lba", "uba", "active0", "carry"],
        {"cse": True},
    )
    finish = FinishStage(setup, qp, layout, safe, type(carry))
    reads_inputs = safe.kind != "zero"
    return Stages(
        qp=LeastDistanceStages(build, finish.function(symbols), cones=cones),
        about=qp.problem.rows.about,
        u_min=limits[0],
        u_max=limits[1],
        nw=qp.problem.contacts.of_w.shape[1],
        scales=scales,
        safe=safe,
        finish_from_carry=None if reads_inputs else finish.function({}),
    )


def _level_stages(
    setup: Setup,
    symbols: dict[str, ca.SX],
    arguments: dict[str, ca.SX],
    qp: CondensedProblem,
    posed: Posed,
    safe: SafeOutput,
    limits: tuple[Array, Array],
) -> Stages:
    """Return the stages of a controller with levels, from what `make_stages` has assembled."""
    rows, units = qp.problem.rows, unit_coordinates(setup, qp)
    levels = levels_of(setup, len(soft_rows(rows.about, setup.soft)))
    qp = replace(qp, whitened=units)
    C, lower, upper = least_distance(setup, qp)
    carried = carried_values(setup, qp, posed)
    carried |= level_values(setup, levels, qp, units, LeastDistance(C, lower, upper))
    m, n = C.shape
    first, further = starts(arguments["z"], m, len(levels), rows.cones)
    carried["level.starts"] = further
    carry, layout = pack(carried)
    judge = LevelJudge(setup, levels, rows, qp.scales, units)
    has_soles = any(len(group.members) > 1 for group in setup.contact_groups)
    cascade = Cascade(len(levels), n, m, setup.level_damping, layout, judge, has_soles)
    problem = cascade.first(carried, first)
    outputs = problem.outputs | {"carry": carry, "passed": pack_passed(problem.passed)[0]}
    names = ["A_qp", "lba", "uba", "active0", "carry", "passed"]
    build = ca.Function(
        "build",
        list(arguments.values()),
        [ca.densify(outputs[name]) for name in names],
        list(arguments),
        names,
        {"cse": True},
    )
    between, between_rows, last = cascade.between(problem.passed)
    finish = FinishStage(setup, qp, layout, safe, type(carry), LastLevel(judge, last, n))
    end = finish.function(symbols)
    return Stages(
        qp=LeastDistanceStages(
            build, end, cones=rows.cones, between=between, between_rows=between_rows
        ),
        about=rows.about,
        u_min=limits[0],
        u_max=limits[1],
        nw=qp.problem.contacts.of_w.shape[1],
        scales=qp.scales,
        safe=safe,
        finish_from_carry=None,
        unknowns=finish.levels.unknowns(layout) if finish.levels else None,
    )


def least_distance(setup: Setup, qp: CondensedProblem) -> LeastDistance:
    """Return the inequalities over the whitened unknown, as a least-distance problem."""
    nu, rows = setup.system.nu, qp.problem.rows
    condensed, whitened = qp.condensed, qp.whitened
    p_0, w_0 = whitened.y_0[:nu, 0], whitened.y_0[nu:, 0]
    at_0 = rows.value(p_0, condensed.multipliers(p_0), w_0, condensed.acceleration(p_0))
    lba, uba = shift_bounds(rows.lower, at_0), shift_bounds(rows.upper, at_0)
    return LeastDistance(ca.densify(_rows_of_x(nu, rows, condensed, whitened)), lba, uba)


def _rows_of_x(nu: int, rows: Rows, condensed: Condensed, whitened: Whitened) -> ca.SX:
    """Return the inequalities' matrix over the whitened unknown."""
    of_x = whitened.L_inv.T  # the coupled unknowns as functions of x, transposed
    coupled = of_x.shape[0]
    of_p = of_x[:, :nu] if coupled > nu else of_x
    of_lam = linalg.product(of_p, condensed.E.T)
    columns = []
    for C_p, C_lam, C_w, C_a in _blocks(rows):
        of_forces = [(of_p, C_p), (of_lam, -C_lam)]
        if C_a.nnz():
            of_forces.append((of_p, linalg.product(condensed.T.T, C_a.T).T))
        if coupled > nu:
            of_forces.append((of_x[:, nu:], C_w))
        parts = [linalg.product(of_y, C.T) for of_y, C in of_forces if C.nnz()]
        columns.append(ca.densify(sum(parts, type(of_x)(coupled, C_p.shape[0]))))
    A = ca.horzcat(*columns).T if columns else type(of_x)(0, coupled)
    return A if coupled > nu else ca.horzcat(A, ca.densify(whitened.free**-0.5 * rows.C_w))


def _blocks(rows: Rows) -> Iterator[list[ca.SX]]:
    """Return C_p, C_lam, C_w and C_a of rows that follow each other and have the same of these."""
    matrices = [rows.C_p, rows.C_lam, rows.C_w, rows.C_a]
    kinds = [tuple(i in set(C.sparsity().row()) for C in matrices) for i in range(len(rows.about))]
    first = 0
    for _, same in groupby(kinds):
        size = len(list(same))
        yield [_some_rows(C, first, first + size) for C in matrices]
        first += size


def _some_rows(C: ca.SX, first: int, end: int) -> ca.SX:
    """Return rows of a matrix, those of a constant as a constant."""
    return type(C)(ca.evalf(C)[first:end, :] if C.is_constant() else C[first:end, :])


def tasks_of_tick(setup: Setup, tasks: TaskStack) -> TaskStack:
    """Return the tasks with what a tick reads of them."""
    nothing = ca.SX(0, 1)
    tasks = replace(tasks, target=nothing)
    if setup.bounded_errors:
        return tasks
    unread = ("error", "home_error", "feedback", "kp", "kd")
    return replace(tasks, **dict.fromkeys(unread, nothing))


def cannot_be_kept(setup: Setup, at: Instant) -> ca.SX:
    """Return whether a part has a limit that cannot be kept, whatever the solver finds."""
    lost = [each.lost(at) for each in setup.bound if each.lost]
    return lost[0] if len(lost) == 1 else ca.mmax(ca.vertcat(ca.SX(0), *lost))


def untuned_actuators(setup: Setup, at: Instant, problem: Problem) -> ActuatorModel:
    """Return the actuators with the limits that no tuning changes."""
    if "limits" not in setup.tunable:
        return problem.actuators
    model = actuator_model(setup.system, setup.ranges, setup.period, at.q, at.v, at.act)
    return joint_sums(setup.system, model)[0]


def control_limits(setup: Setup, actuators: ActuatorModel) -> tuple[Array, Array]:
    """Return constant limits (nu,) of the control: its own, and its force's by a constant gain."""
    lower, upper = (setup.ranges.ctrl[:, side].copy() for side in (0, 1))
    for i in range(setup.system.nu):
        constant = actuators.gain[i].is_constant() and actuators.bias[i].is_zero()
        stateful = bool(setup.system.actuators) and setup.system.actuators[i].act is not None
        if stateful or not constant or float(actuators.gain[i]) == 0.0:
            continue
        low, high = actuators.lower[i], actuators.upper[i]
        if low.is_constant() and high.is_constant():
            ends = sorted(float(end) / float(actuators.gain[i]) for end in (low, high))
            lower[i] = max(lower[i], ends[0]) if abs(float(low)) < UNBOUNDED else lower[i]
            upper[i] = min(upper[i], ends[1]) if abs(float(high)) < UNBOUNDED else upper[i]
    return lower, upper


def _without_reports(setup: Setup, problem: Problem) -> Problem:
    """Return the problem without what only reports and its assembly read."""
    nothing = ca.SX(0, 1)
    return replace(
        problem,
        late=None,
        contacts=replace(problem.contacts, J=nothing, c=nothing),
        tasks=tasks_of_tick(setup, problem.tasks),
        on=nothing if setup.load_sharing is None else problem.on,
    )
