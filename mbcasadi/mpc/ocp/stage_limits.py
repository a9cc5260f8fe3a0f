"""Limits of inverse dynamics in an optimal control problem: bounds of its samples.

A limit of a position or of a rate bounds the state at every sample but the given one, where inverse
dynamics lowers it to accelerations (`control/limits/braking_rule.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.control.tick.design import Design, Tick
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import FREE, StagePart, StageTerms
from mbcasadi.qp.rows import Bounded
from mbcasadi.system import System
from mbcasadi.system.ranges import Ranges, require_ranges


class StageDesign(Design):
    """What limits may know of an optimal control problem when they are bound: no forces."""

    tasks, contacts, levels = (), (), ()
    force_reference = False
    lowers = False
    delay_ticks = 0
    added_inertia = None
    slots, given, held_joints, weighed_forces = (), (), (), ()

    def __init__(self, system: System, period: float, tunable: Sequence[str]) -> None:
        self.system, self.period, self.tunable = system, period, tunable

    @property
    def tick(self) -> Tick:
        """How an interval advances coordinates."""
        return Tick(self.period)

    @property
    def ranges(self) -> Ranges:
        """Ranges of controls and actuator forces."""
        return require_ranges(self.system, None, None)

    @property
    def held_rows(self) -> Array:
        """No rows."""
        return np.zeros((0, self.system.nv))


@final
@dataclass(frozen=True)
class StageLimits(StagePart):
    """Limits of q and v, those of inverse dynamics."""

    parts: tuple[Part, ...]
    period: float

    def terms(self, stage: Stage) -> StageTerms:
        """Return their rows at every sample but the given one.

        Raises:
            ProblemError: a part of inverse dynamics that bounds no position and no rate.
        """
        design = StageDesign(stage.members, self.period, stage.tuning.tunable)
        bound = [part.bind(design) for part in self.parts]
        return limits_of_state(stage, bound)


def limits_of_state(stage: Stage, bound: Sequence[Bound]) -> StageTerms:
    """Return the rows of limits at every sample but the given one; ranges of x as its bounds.

    Raises:
        ProblemError: a part without rows of the state.
    """
    x, x_bounds = stage.x, np.tile(FREE, (stage.x.numel(), 1))
    state = stage.variables.carried_q, stage.variables.v
    tuning = {entry.name: stage.tuning.add(entry) for each in bound for entry in each.tuning}
    stage.tuning.ordered += [pair for each in bound for pair in each.ordered]
    now = Instant.planned(state, ca.SX(0, 1), {}, tuning=tuning)
    rows = list[Bounded]()
    for each in bound:
        if each.path is None:
            raise ProblemError(
                f"'{each.name}' is a part of inverse dynamics that bounds no position and no "
                "rate; expected a limit of q or v, a task, or parts of mbcasadi.mpc"
            )
        for row in each.path(now):
            places = [i for i in range(x.numel()) if ca.is_equal(x[i], ca.SX(row.value))]
            if not places:
                rows.append(row)
                continue
            low, high = x_bounds[places[0]]
            x_bounds[places[0]] = np.max([low, row.lower]), np.min([high, row.upper])
    at_end = [replace(row, at_end=True) for row in rows]
    return StageTerms(
        rows=[*rows, *at_end], given=dict.fromkeys(range(len(rows)), FREE), x_bounds=x_bounds
    )
