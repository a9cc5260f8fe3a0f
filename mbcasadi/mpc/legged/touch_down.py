"""Feet that stand when they touch, and not when the schedule says so."""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import MASK_ON
from mbcasadi.shapes import require_numbers, require_positive


@dataclass(frozen=True)
class TouchDown:
    """Touch-down by measured forces: feet stand when they touch, not when the schedule says so.

    For each foot the planner remembers two flags, `stands` and `left`, whether it has been in the
    air since its swing began. F is the sum of the normal forces of its n contacts, f the least of
    them:

        scheduled to swing, not left yet:   it does not stand; it has left when F < off_force,
        scheduled to swing, left:           it stands from F >= on_force and n f >= off_force on,
                                            if the share `earliest` of its swing is over (an early
                                            touch-down),
        scheduled to stand:                 it stands, or does so from F >= on_force on.

    A sole that touches early with an edge does not stand yet: its swing goes on to lay it flat.

    A foot that stands early keeps its place until its scheduled stance is over. One that is late
    goes on downwards from where its swing ended, at a constant speed, until it touches or has gone
    `depth`. Heights of footholds and body are above the places where the feet stand, or stood last.

    A foot that swings is pressed on the ground by its task only, with about `m kp depth`, m its
    mass as the joints feel it. `on_force` is well below that: 10 N suit a humanoid of 35 kg, and a
    quadruped of 12 kg never touches with them in time.

    Attributes:
        on_force: N, the normal force of a foot from which on it stands. None: that with which the
            lightest foot presses at a depth of 5 mm.
        off_force: N, below which it has left the ground. None: half of `on_force`.
        speed: m/s, downwards, of a foot that is late.
        depth: m, by which it goes down at most.
        earliest: share of a swing before which a touch does not count.

    Raises:
        ProblemError: a number out of its range, `off_force > on_force`.
    """

    on_force: float | None = None
    off_force: float | None = None
    speed: float = 0.2
    depth: float = 0.05
    earliest: float = 0.5

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(speed=self.speed)
        require_numbers(depth=self.depth, earliest=self.earliest)
        forces = {"on_force": self.on_force, "off_force": self.off_force}
        require_positive(**{name: force for name, force in forces.items() if force is not None})
        on = np.inf if self.on_force is None else self.on_force
        if (self.off_force or 0.0) > on or self.earliest > 1:
            raise ProblemError(
                f"off_force = {self.off_force} N, on_force = {self.on_force} N, earliest = "
                f"{self.earliest}; expected off_force <= on_force, and a share of the swing, at "
                "most 1"
            )


class FootForce(NamedTuple):
    """The normal forces of a foot's contacts: their sum, and the least times their number, N."""

    total: ca.SX
    least: ca.SX


class FootFlags(NamedTuple):
    """Whether a foot stands, and whether it has left the ground since its swing began."""

    stands: ca.SX
    left: ca.SX


def next_flags(
    rule: TouchDown, before: FootFlags, scheduled: ca.SX, share: ca.SX, force: FootForce
) -> FootFlags:
    """Return the flags of a foot at this tick.

    Args:
        rule: with its forces; see `pressing_force.touch_down_of`.
        before: its flags of the last tick.
        scheduled: whether the gait has it on the ground.
        share: of its swing that is over.
        force: of its contacts.
    """
    stood, had_left = before.stands > MASK_ON, before.left > MASK_ON
    on_force, off_force = rule.on_force or 0.0, rule.off_force or 0.0
    touches, airborne = force.total >= on_force, ca.logic_not(force.total >= off_force)
    flat = ca.logic_and(touches, force.least >= off_force)
    in_stance = ca.logic_or(stood, touches)
    landed = ca.logic_or(stood, ca.logic_and(flat, share > rule.earliest))
    return FootFlags(
        ca.if_else(scheduled, in_stance, ca.logic_and(had_left, landed)),
        ca.if_else(
            scheduled,
            ca.logic_and(had_left, ca.logic_not(in_stance)),
            ca.logic_or(had_left, airborne),
        ),
    )


def searched_place(
    rule: TouchDown, last: ca.SX, foothold_height: ca.SX, period: float
) -> tuple[ca.SX, ca.SX]:
    """Return place and velocity (3,) of a foot that is late.

    Args:
        rule: its speed and depth.
        last: (3,) m, its reference of the last tick.
        foothold_height: m, the height at which it was to land.
        period: s, of a tick.
    """
    lowest = foothold_height - rule.depth
    moves = last[2] > lowest
    height = ca.fmax(last[2] - period * rule.speed, ca.fmin(lowest, last[2]))
    velocity = ca.vertcat(0, 0, ca.if_else(moves, -rule.speed, 0))
    return ca.vertcat(last[:2], height), velocity
