"""Tasks that are missed for a while: a bit of `flags`, from counts of ticks in z.

A tick misses a task where

    |J a + c - a_des| > max(½ |a_des|, 1),

each row over its floor f, below which nothing counts as missed:

    f_i = SHARE rate² |J_i D|,

the row's share of the accelerations that the mechanism has by itself (sizes D and the rate of
`system/scales.py`), as a median over poses. `rate² D` is g for translations, g over the model's
length for rotations. a_des is that of the QP: with bounded errors (`followed_errors.py`), and
clipped where a reference is far out of reach (`Flag.CLIPPED`). From the tick on that is the
`TICKS`th in succession, all of them solved, `Flag.TASK_MISSED` is set.

Rows lead, and are judged, whose weight is more than a tenth of the heaviest one; with levels, those
of the first one. The others choose among the motions that these leave, and missing is their part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.task_stack import TaskStack
from mbcasadi.control.tasks.task import HEAVIER
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.part import Bound, Outcome, Part, Values
from mbcasadi.description.status import Flag
from mbcasadi.linalg.scalars import in_scalars

Array = NDArray[np.float64]
Rows = Mapping[str, list[int]]
"""Rows of tasks that are judged, by the task's name."""

NAME = "missed"

TICKS = 20
"""Missed ticks in succession from which on a task is flagged."""

SHARE = 0.05
"""Share of the mechanism's own acceleration that counts as missed: 0.5 m/s² by gravity, the pull of
an error of 5 mm with `kp = 100`."""


@final
@dataclass(frozen=True)
class MissedTasks(Part):
    """The ticks in succession that miss each judged task; z remembers them."""

    def bind(self, design: Design) -> Bound:
        """Return the counts and their flag; nothing where no task is judged."""
        rows = judged_tasks(design)
        if not rows:
            return Bound(NAME)

        def counts(tick: Outcome) -> ca.SX:
            is_missed = missed(rows, tick.known, tick.known["miss"])
            return next_counts(tick.known["ticks"], is_missed, tick.solved)

        return Bound(
            NAME,
            memory=tuple(f"missed_ticks.{name}" for name in rows),
            carry=lambda now: {"ticks": now.memory[NAME]},
            judge=lambda tasks, floors: judged_rows(rows, tasks, floors),
            moved=lambda _known, _a, miss: {"miss": miss},
            flags=lambda tick: missed_flag(counts(tick)),
            remember=counts,
        )


def judged_tasks(design: Design) -> dict[str, list[int]]:
    """Return the rows that lead of each task that has some, by its name; with tunable weights all.

    Args:
        design: of the controller.
    """
    first = set(design.levels[0]) if design.levels else {task.name for task in design.tasks}
    weights = [
        (task.name, gains.weight) for task, gains in zip(design.tasks, design.gains, strict=True)
    ]
    heaviest = max(
        (float(np.max(w, initial=0.0)) for name, w in weights if name in first), default=0.0
    )
    rows_of_task, start = {}, 0
    for name, weight in weights:
        leads = (HEAVIER * weight > heaviest) | ("weights" in design.tunable)
        if name in first and leads.any():
            rows_of_task[name] = [start + int(row) for row in np.flatnonzero(leads)]
        start += len(weight)
    return rows_of_task


def floors(design: Design, J: list[Array]) -> Array:
    """Return f (k,) of the rows of all tasks, 1 where nothing moves one.

    Args:
        design: of the controller.
        J: (k, nv) Jacobians of all tasks at the sampled poses.
    """
    scales = design.system.scales
    largest = SHARE * scales.rate**2 * scales.coordinates
    usual = np.median([np.linalg.norm(rows * largest, axis=1) for rows in J], axis=0)
    return np.asarray(np.where(usual > 0, usual, 1.0))


def judged_rows(rows: Rows, tasks: TaskStack, floor: Array) -> Values:
    """Return what a tick's misses are compared with, by name.

    That is `share` (k,), `1 / f` of rows that are judged, zero of others, and `allowed`, the square
    of what each task may miss.

    Args:
        rows: from `judged_tasks`, some.
        tasks: of the QP.
        floor: f.
    """
    indices = [row for each in rows.values() for row in each]
    inverse = ca.DM(floor.size, 1)
    inverse[indices] = 1 / floor[indices]
    share = inverse
    if not isinstance(tasks.stated, ca.DM):
        share = in_scalars(
            "leading",
            lambda k: [inverse * (HEAVIER * k["weight"] > ca.mmax(k["weight"][indices, 0]))],
            {"weight": tasks.stated},
        )[0]
    allowed = in_scalars(
        "allowed",
        lambda k: [ca.fmax(_squares(rows, k["share"] * (k["c"] - k["offset"])) / 4, 1)],
        {"share": share, "c": ca.densify(tasks.c), "offset": ca.densify(tasks.offset)},
    )[0]
    return {"share": share, "allowed": allowed}


def missed(rows: Rows, known: Values, miss: ca.SX) -> ca.SX:
    """Return one for each judged task that a tick misses.

    Args:
        rows: from `judged_tasks`.
        known: `judged_rows`.
        miss: (k,) `J a + c - a_des`.
    """
    return _squares(rows, known["share"] * miss) > known["allowed"]


def _squares(rows: Rows, values: ca.SX) -> ca.SX:
    """Return the sum of squares of each task."""
    return ca.vertcat(*(ca.sumsqr(values[own, 0]) for own in rows.values()))


def next_counts(before: ca.SX, is_missed: ca.SX, solved: ca.SX) -> ca.SX:
    """Return the missed ticks in succession behind a tick, at most `TICKS` each.

    Args:
        before: what z remembers, of any size.
        is_missed: one for each task that the tick misses.
        solved: whether it has a solution.
    """
    counted = ca.fmin(ca.fmax(before, 0) + 1, TICKS)
    return ca.if_else(ca.logic_and(solved, is_missed), counted, 0)


def missed_flag(counts: ca.SX) -> ca.SX:
    """Return the bit of `flags` for the counts behind a tick."""
    return int(Flag.TASK_MISSED) * (ca.mmax(counts) >= TICKS)


def missed_by(design: Design, values: Mapping[str, ca.DM]) -> dict[str, tuple[str, float, float]]:
    """Return for each task that is missed the row that misses most, by how much, and its a_des.

    Args:
        design: of the controller.
        values: of an inspection, by name.
    """
    rows = judged_tasks(design)
    if not rows:
        return {}
    miss, share, desired = (
        np.array(values[key]).ravel() for key in ("miss", "miss_share", "desired")
    )
    names = [row for task in design.tasks for row in task.components(design.system)]
    worst_rows = {}
    for (task, indices), is_missed in zip(
        rows.items(), np.array(values["missed"]).ravel(), strict=True
    ):
        if is_missed:
            worst = indices[int(np.argmax(np.abs(share * miss)[indices]))]
            worst_rows[task] = names[worst], float(abs(miss[worst])), float(abs(desired[worst]))
    return worst_rows
