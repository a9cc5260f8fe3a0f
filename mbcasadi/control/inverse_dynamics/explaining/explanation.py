"""What the limits of a controller do at one state: exclude each other, or cost the tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.explaining.excluding_limits import (
    TaskShares,
    excluding_limits,
    rows_of_limits,
)
from mbcasadi.control.inverse_dynamics.solution import CondensedQP, InverseDynamicsSolution
from mbcasadi.control.inverse_dynamics.viability import LOST, SHORTFALL, lost_rows
from mbcasadi.control.tasks.task import Task
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.description.status import Status
from mbcasadi.qp.plugins import DENSE_SOLVERS
from mbcasadi.qp.rows import Row
from mbcasadi.short_text import summarised
from mbcasadi.system import System

Array = NDArray[np.float64]

ACTIVE = 1e-6
"""Distance from its bound, relative to the largest, at which a row of unit length is active."""

COSTS = 1e-6
"""Share of all tasks' cost below which a limit costs nothing."""


STATE_IS_BAD = (
    "bad input: all entries are finite; a loop is open, q and v are too large, or tunable limits "
    "are not in order"
)

MET = 1e-5
"""Error of a level, relative to what is in it, from which it counts as not met."""


@summarised
@dataclass(frozen=True)
class Explanation:
    """What a controller's limits do at one state.

    Attributes:
        status: of the solution, see `Status`.
        excluding: limits that exclude each other: a minimal set, none where all can be met.
        costs: for each active limit, by how much each task's `½ |error|²_W` would fall without it.
        task_costs: what that is for each task.
        relaxed: soft rows that are violated, and by how much.
        levels: of a controller with levels, for each that is not met: a minimal set of limits and
            levels before it that exclude it; itself where no motion meets it, none where it is
            damped at a singular pose. `costs` is empty then: no level gives up anything for a later
            one.
        unviable: joints and distances that cannot be kept from their limits any more: the
            deceleration that is needed, and what actuators can give of it, rad/s² or m/s².
        shortfall: share of all demanded decelerations that actuators cannot give together.
        missed: judged tasks that this tick misses, see `missed_tasks.py`: the row that is missed
            most, by how much, and its desired acceleration, in the row's unit over s².
        bad: entries of inputs that are no valid numbers, with their index and value. Those of z
            alone do not make a tick bad.
    """

    status: int
    excluding: tuple[str, ...]
    costs: Mapping[str, Mapping[str, float]]
    task_costs: Mapping[str, float]
    relaxed: Mapping[str, float]
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unviable: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    shortfall: float = 0.0
    missed: Mapping[str, tuple[str, float, float]] = field(default_factory=dict)
    bad: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.status == Status.BAD_INPUT:
            return f"bad input: {', '.join(self.bad)}" if self.bad else STATE_IS_BAD
        if self.excluding:
            verb = "exclude each other" if len(self.excluding) > 1 else "excludes all motions"
            return f"{_listed(self.excluding)} {verb}"
        nothing = "" if self.costs or self.levels else "; none costs a task anything"
        lines = [f"no limits exclude each other{nothing}"]
        lines += [f"  {entry} is no valid number" for entry in self.bad]
        for limit, falls in self.costs.items():
            parts = [
                f"{task} {x:.3g} (of {self.task_costs[task]:.3g})" for task, x in falls.items()
            ]
            lines.append(f"  {limit} costs {', '.join(parts)}")
        for level, limits in self.levels.items():
            why = f"is excluded by {_listed(limits)}" if limits else "is damped: a singular pose"
            lines.append(
                f"  {level} {'cannot be met by any motion' if limits == (level,) else why}"
            )
        lines += [f"  {name} is violated by {amount:.3g}" for name, amount in self.relaxed.items()]
        for name, (row, miss, desired) in self.missed.items():
            lines.append(
                f"  task {name} is missed: {row} by {miss:.3g}, where {desired:.3g} is desired"
            )
        for name, (asked, given) in self.unviable.items():
            lines.append(
                f"  {name} cannot stop before its limit: it needs {asked:.3g}, and at most "
                f"{given:.3g} can be given"
            )
        if self.shortfall > LOST:
            lines.append(
                f"  {self.shortfall:.1%} of what limits of positions demand cannot be given at once"
            )
        return "\n".join(lines)


def task_shares(tasks: Sequence[Task], system: System, values: Mapping[str, ca.DM]) -> TaskShares:
    """Return the tasks' errors as functions of y.

    Args:
        tasks: of the controller.
        system: the mechanism.
        values: of an inspection, by name.
    """
    of_p, H = np.array(values["task_map"]), values["H"]
    sizes = [len(task.components(system)) for task in tasks]
    ends = np.cumsum([0, *sizes])
    return TaskShares(
        map=np.hstack([of_p, np.zeros((len(of_p), H.shape[0] - of_p.shape[1]))]),
        right=np.array(values["task_right"]).ravel(),
        weight=np.array(values["task_weight"]).ravel(),
        rows={task.name: slice(ends[i], ends[i + 1]) for i, task in enumerate(tasks)},
    )


def lacking(
    rows: Sequence[Row], values: Mapping[str, ca.DM]
) -> tuple[dict[str, tuple[float, float]], float]:
    """Return the limits of positions that demand more than can be given, and the shortfall.

    Args:
        rows: what they are.
        values: of an inspection, by name.
    """
    asked, given = (np.array(values[key]).ravel() for key in ("asked", "given"))
    lost = np.array(lost_rows(values["asked"], values["given"])).ravel() > 0
    names = [f"{kind} '{name}'" for kind, name in (row.owner for row in rows)]
    pairs = zip(names, asked, given, lost, strict=True)
    return {name: (float(a), float(g)) for name, a, g, is_lost in pairs if is_lost}, float(
        values["shortfall"]
    )


def explanation(
    solution: InverseDynamicsSolution,
    y: Array,
    tasks: TaskShares,
    solver: str,
    exactly: Sequence[str],
    levels: Sequence[Sequence[str]],
    positions: tuple[Mapping[str, tuple[float, float]], float] = ({}, 0.0),
    slacks: int = 0,
) -> Explanation:
    """Return what the limits do at a solution.

    Args:
        solution: solved or not.
        y: (n,) its unknowns.
        tasks: of the controller.
        solver: of `DENSE_SOLVERS`.
        exactly: names of tasks that have to be met without error.
        levels: names of the tasks of each level; none without levels.
        positions: what limits of positions lack, see `lacking`.
        slacks: number of soft rows.
    """
    problem = solution.problem
    excluding: tuple[str, ...] = ()
    costs: dict[str, dict[str, float]] = {}
    whole: dict[str, float] = {}
    unmet: dict[str, tuple[str, ...]] = {}
    if solution.status != Status.BAD_INPUT and np.all(np.isfinite(problem.A_qp)):
        desired = {f"task {name}": tasks.equality(name) for name in exactly}
        excluding = excluding_limits(problem, desired)
        if levels and not excluding:
            prices = tuple(f"the price of {name}" for name in solution.relaxed)
            unmet = excluded_levels(problem, tasks, levels, y, (slacks, prices))
            whole = tasks.costs(y)
        elif not excluding:
            costs, whole = limit_costs(problem, tasks, solver)
    return Explanation(
        solution.status, excluding, costs, whole, solution.relaxed, unmet, *positions
    )


def excluded_levels(
    problem: CondensedQP,
    tasks: TaskShares,
    levels: Sequence[Sequence[str]],
    y: Array,
    soft: tuple[int, tuple[str, ...]] = (0, ()),
) -> dict[str, tuple[str, ...]]:
    """Return for each level that is not met what excludes it; levels before it stay as they are.

    Args:
        problem: the QP, feasible.
        tasks: of the controller.
        levels: names of the tasks of each level.
        y: (n,) the solution.
        soft: number of soft rows, which stay as the first level has them, and what it pays, in
            words.
    """
    slacks, prices = soft
    of_slacks = np.eye(slacks, y.size, k=problem.T.shape[1])  # the first unknowns behind p
    found: dict[str, tuple[str, ...]] = {}
    before: dict[str, tuple[Array, Array]] = {}
    for k, members in enumerate(levels):
        name = f"level {k + 1} ({', '.join(members)})"
        parts = [tasks.equality(member) for member in members]
        of_y, right = (np.concatenate(each) for each in zip(*parts, strict=True))
        size = np.linalg.norm(of_y, axis=1) * np.linalg.norm(y) + np.abs(right)
        if np.any(np.abs(of_y @ y - right) > MET * size.max(initial=0.0)):
            excluding = excluding_limits(problem, before | {name: (of_y, right)})
            others = tuple(other for other in excluding if other != name)
            found[name] = others or excluding or (prices if k == 0 else ())
        if k == 0:
            of_y = np.vstack([of_y, of_slacks])
        before[f"level {k + 1}"] = of_y, of_y @ y
    return found


def limit_costs(
    problem: CondensedQP, tasks: TaskShares, solver: str
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Return what each active limit costs each task, and what the tasks cost with all limits.

    Args:
        problem: the QP, feasible.
        tasks: of the controller.
        solver: of `DENSE_SOLVERS`.
    """
    limits, m = rows_of_limits(problem), len(problem.row_names)
    best = _optimum(problem, np.ones(m, bool), solver)
    whole = tasks.costs(best)
    least = COSTS * (sum(whole.values()) or 1.0)
    found = {}
    active = [name for name, rows in limits.items() if _is_active(problem, rows, best)]
    for name in [name for name in active if name != SHORTFALL]:
        without = np.ones(m, bool)
        without[limits[name]] = False
        free = tasks.costs(_optimum(problem, without, solver))
        falls = {task: cost - free[task] for task, cost in whole.items()}
        falls = {task: fall for task, fall in falls.items() if abs(fall) > least}
        if falls:
            found[name] = falls
    return found, whole


def _is_active(problem: CondensedQP, rows: Sequence[int], y: Array) -> bool:
    """Return whether y is at a bound of one of the rows."""
    A, lower, upper = problem.A_qp[rows], problem.lba[rows], problem.uba[rows]
    value, bounds = A @ y, np.concatenate([lower, upper])
    known = np.abs(bounds[np.abs(bounds) < UNBOUNDED / 2])
    near = ACTIVE * (np.linalg.norm(A, axis=1) * np.linalg.norm(y) + known.max(initial=0.0))
    return bool(np.any((upper - value < near) | (value - lower < near)))


def _optimum(problem: CondensedQP, kept: NDArray[np.bool_], solver: str) -> Array:
    """Return the optimum y with some of the rows."""
    root = np.linalg.cholesky(problem.H)  # H = root rootᵀ, x = rootᵀ y + root⁻¹ g
    start = -np.linalg.solve(problem.H, problem.g)
    A = np.linalg.solve(root, problem.A_qp[kept].T).T
    ends = [bound[kept] - problem.A_qp[kept] @ start for bound in (problem.lba, problem.uba)]
    ends = [np.where(np.abs(end) < UNBOUNDED / 2, end, np.copysign(np.inf, end)) for end in ends]
    length = np.linalg.norm(A, axis=1)
    present = length > 0
    n = len(problem.g)
    if not np.any(present):
        return np.asarray(start)
    A, ends = A[present] / length[present, None], [e[present] / length[present] for e in ends]
    pattern = {"h": ca.Sparsity.diag(n), "a": ca.Sparsity.dense(*A.shape)}
    solve = ca.conic("without", solver, pattern, DENSE_SOLVERS[solver])
    x = solve(h=ca.DM.eye(n), g=ca.DM.zeros(n), a=A, lba=ends[0], uba=ends[1])["x"]
    return np.asarray(start + np.linalg.solve(root.T, np.array(x).ravel()))


def _listed(names: Sequence[str]) -> str:
    """Return names as a list in words."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
