"""A robot that stands while it has no command: when it begins to walk, and when its feet stay.

The gait has a beginning and an end, s, which z remembers, and which every plan carries: until a
moment at which a plan acts, its feet are those of the plan before. A command begins a walk; after
a time without one the walk ends, and feet that swing then land first. Both come half a horizon
later, so that a plan knows of them before.
"""

from dataclasses import dataclass
from typing import NamedTuple, final

import casadi as ca

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.tasks.task import Slot
from mbcasadi.mpc.legged.gait import Gait, Walk
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import StagePart, StageTerms
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import require_positive
from mbcasadi.short_text import summarised
from mbcasadi.system import System

WALK = "walk"
"""Slice of p: beginning and end of the walk, s."""

FOREVER = 1e6
"""s, length of a walk whose end is not known."""

ROUNDING = 1e-6
"""s by which the time of a tick may be short of its moment."""


@final
@summarised
@readable_fields
@dataclass(frozen=True)
class Standing:
    """When a robot with a gait stands.

    Attributes:
        least: speed of the command from which a walk begins, m/s; that of its turn counts at the
            feet. A walk ends after a command below half of it.
        rest: time of such a command before the walk ends, s.
        push: speed of the base from which the robot steps without a command, m/s.
    """

    least: float = 0.02
    rest: float = 0.5
    push: float = 0.4

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(least=self.least, rest=self.rest, push=self.push)


@final
@dataclass(frozen=True)
class WalkTimes(StagePart):
    """The slice `walk` of p, which a plan hands to the law that follows it."""

    def slots(self, system: System) -> tuple[Slot, ...]:  # noqa: ARG002  # the interface's
        """Return the slice."""
        return (Slot(WALK, ("begin", "end"), ("s", "s")),)

    def terms(self, stage: Stage) -> StageTerms:  # noqa: ARG002  # no plan depends on it
        """Return nothing."""
        return StageTerms()


class Remembered(NamedTuple):
    """What z holds: beginning and end of the walk, s, and the time without a command, s."""

    begin: ca.SX
    end: ca.SX
    idle: ca.SX

    def next(
        self,
        standing: Standing,
        gait: Gait,
        at: tuple[ca.SX, float, float],
        speeds: tuple[ca.SX, ca.SX],
    ) -> "Remembered":
        """Return what holds from a moment on.

        Args:
            standing: the rule.
            gait: of the feet.
            at: the moment at which a plan acts, the time between two, and that by which a plan
                knows of a beginning or an end before it comes, s.
            speeds: of the command, and of the base.
        """
        (moment, period, ahead), (command, base) = at, speeds
        pushed = base > standing.push
        moves = ca.logic_or(command > standing.least, pushed)
        still = ca.logic_and(command < standing.least / 2, ca.logic_not(pushed))
        idle = ca.if_else(still, ca.fmin(self.idle + period, 2 * standing.rest), 0)
        walks, then = moment + ahead < self.end - ROUNDING, moment + ahead
        stands = moment >= ca.fmax(self.end + gait.flight, gait.start) - ROUNDING
        begins = ca.logic_and(stands, moves)
        ends = ca.logic_and(walks, idle >= standing.rest - ROUNDING)
        end = ca.if_else(begins, then + FOREVER, ca.if_else(ends, then, self.end))
        return Remembered(ca.if_else(begins, then, self.begin), end, idle)

    def walk(self, gait: Gait) -> Walk:
        """Return the walk."""
        return Walk(gait, self.begin, self.end)
