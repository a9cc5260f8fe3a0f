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
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.tasks.task import HEAVIER
from mbcasadi.description.status import Flag
from mbcasadi.linalg.scalars import in_scalars

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.objective import TaskStack
    from mbcasadi.control.inverse_dynamics.options import Setup

Array = NDArray[np.float64]
Values = dict[str, ca.SX]

TICKS = 20
"""Missed ticks in succession from which on a task is flagged."""

SHARE = 0.05
"""Share of the mechanism's own acceleration that counts as missed: 0.5 m/s² by gravity, the pull of
an error of 5 mm with `kp = 100`."""


def judged_tasks(setup: "Setup") -> dict[str, list[int]]:
    """Return the rows that lead of each task that has some, by its name; with tunable weights all.

    Args:
        setup: the options.
    """
    first = set(setup.levels[0]) if setup.levels else {task.name for task in setup.tasks}
    own = [(task.name, gains.weight) for task, gains in zip(setup.tasks, setup.gains, strict=True)]
    heaviest = max((float(np.max(w, initial=0.0)) for name, w in own if name in first), default=0.0)
    found, start = {}, 0
    for name, weight in own:
        leads = (HEAVIER * weight > heaviest) | ("weights" in setup.tunable)
        if name in first and leads.any():
            found[name] = [start + int(row) for row in np.flatnonzero(leads)]
        start += len(weight)
    return found


def count_names(setup: "Setup") -> tuple[str, ...]:
    """Return the name of each entry that z remembers."""
    return tuple(f"missed_ticks.{name}" for name in judged_tasks(setup))


def floors(setup: "Setup", J: list[Array]) -> Array:
    """Return f (k,) of the rows of all tasks, 1 where nothing moves one.

    Args:
        setup: the options.
        J: (k, nv) Jacobians of all tasks at the sampled poses.
    """
    scales = setup.system.scales
    own = SHARE * scales.rate**2 * scales.coordinates
    usual = np.median([np.linalg.norm(rows * own, axis=1) for rows in J], axis=0)
    return np.asarray(np.where(usual > 0, usual, 1.0))


def judged_rows(setup: "Setup", tasks: "TaskStack", floor: Array) -> Values:
    """Return what a tick's misses are compared with, by name.

    That is `missed.share` (k,), `1 / f` of rows that are judged, zero of others, and
    `missed.allowed`, the square of what each task may miss.

    Args:
        setup: the options.
        tasks: of the QP.
        floor: f.
    """
    rows = judged_tasks(setup)
    if not rows:
        return {}
    own = [row for each in rows.values() for row in each]
    inverse = ca.DM(floor.size, 1)
    inverse[own] = 1 / floor[own]
    share = inverse
    if not isinstance(tasks.stated, ca.DM):
        share = in_scalars(
            "leading",
            lambda k: [inverse * (HEAVIER * k["weight"] > ca.mmax(k["weight"][own, 0]))],
            {"weight": tasks.stated},
        )[0]
    allowed = in_scalars(
        "allowed",
        lambda k: [ca.fmax(_squares(rows, k["share"] * (k["c"] - k["offset"])) / 4, 1)],
        {"share": share, "c": ca.densify(tasks.c), "offset": ca.densify(tasks.offset)},
    )[0]
    return {"missed.share": share, "missed.allowed": allowed}


def missed(setup: "Setup", known: Mapping[str, ca.SX], miss: ca.SX) -> ca.SX:
    """Return one for each judged task that a tick misses.

    Args:
        setup: the options.
        known: `judged_rows`.
        miss: (k,) `J a + c - a_des`.
    """
    squares = _squares(judged_tasks(setup), known["missed.share"] * miss)
    return squares > known["missed.allowed"]


def _squares(rows: Mapping[str, list[int]], values: ca.SX) -> ca.SX:
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


def missed_by(setup: "Setup", values: Mapping[str, ca.DM]) -> dict[str, tuple[str, float, float]]:
    """Return for each task that is missed the row that misses most, by how much, and its a_des.

    Args:
        setup: the options.
        values: of an inspection, by name.
    """
    rows = judged_tasks(setup)
    if not rows:
        return {}
    miss, share, desired = (
        np.array(values[key]).ravel() for key in ("miss", "miss_share", "desired")
    )
    names = [row for task in setup.tasks for row in task.components(setup.system)]
    found = {}
    for (task, own), is_missed in zip(
        rows.items(), np.array(values["missed"]).ravel(), strict=True
    ):
        if is_missed:
            worst = own[int(np.argmax(np.abs(share * miss)[own]))]
            found[task] = names[worst], float(abs(miss[worst])), float(abs(desired[worst]))
    return found
