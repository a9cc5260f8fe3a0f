"""Contacts that measured forces show to be there before, or not yet after, a gait says so.

F is the sum of the normal forces of the n contacts of a foot, f the least of them. Once a plan:

    in a swing:   once the share `earliest` of it is over, the foot is down from F >= on_force and
                  n f >= off_force on, flat, and stands where it is;
    in a stance:  it stays down, or is so from F >= on_force on. It is late while it is not, and by
                  `MISSED` of the height of the base below where its ground was.

A plan carries which contacts stand in its intervals, so that the law moves as the plan does. At its
own ticks the law lets a foot stand that touches in the meantime. A foot that is short of the ground
is no late one: it comes down soonest where the law pushes on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca

from mbcasadi.contacts.groups import contact_groups_of
from mbcasadi.description import Contact
from mbcasadi.mpc.legged.from_system import robot_weight
from mbcasadi.mpc.legged.gait import Walk
from mbcasadi.mpc.legged.touch_down import TouchDown
from mbcasadi.system import System

LANDS = 2
"""Number of the sample of a plan at which late feet land."""

MISSED = 0.01
"""Depth below its ground, by the height of the base, at which a foot has missed it."""

ON_SHARE = 0.1
"""Force from which on a foot touches, by its share of the weight where all stand."""

OFF_SHARE = 0.1
"""`off_force` by `on_force`, unless it is given."""


class Felt(NamedTuple):
    """Which contacts are down, those of them that are early, those that are late: (nc,) each.

    `left` (nc,) is the time that is left of their swings, s.
    """

    down: ca.SX
    early: ca.SX
    late: ca.SX
    left: ca.SX

    def on_later(self, scheduled: ca.SX, ahead: ca.SX | float, interval: ca.SX) -> ca.SX:
        """Return which contacts stand in an interval of a plan, a time ahead, s.

        Late ones swing in its first two, and land behind them.
        """
        stands = ca.logic_or(scheduled, ca.logic_and(self.early, self.left > ahead))
        return ca.logic_and(stands, ca.logic_not(ca.logic_and(self.late, interval < LANDS)))


@dataclass(frozen=True)
class FeltContacts:
    """The rule, for a robot.

    Attributes:
        feet: the contacts of each foot.
        on_force, off_force: N.
        earliest: share of a swing before which a touch does not count.
        speed, depth: with which a late foot goes down, m/s, and how far, m.
        missed: depth below its ground at which a foot has missed it, m.
    """

    feet: tuple[tuple[int, ...], ...]
    on_force: float
    off_force: float
    earliest: float
    speed: float
    depth: float
    missed: float

    def lower(self, place: ca.SX, ahead: ca.SX | float) -> ca.SX:
        """Return where a late foot at a place (3,), ground axes, is to be a time ahead, s."""
        return ca.vertcat(place[:2], place[2] - ca.fmin(self.speed * ahead, self.depth))

    def felt(self, walk: Walk, t: Any, forces: ca.SX, down: ca.SX, above: ca.SX) -> Felt:
        """Return what a plan is to know at t, s.

        Args:
            walk: of the feet.
            t: s.
            forces: (3 nc,) measured, n t1 t2 of each contact, N.
            down: (nc,) those of the plan before.
            above: (nc,) heights of the contacts over their ground, m.
        """
        scheduled, shares = ca.SX(walk.on_ground(t)), ca.SX(walk.swing_share(t))
        touches, flat = self._touches(forces)
        lands = ca.logic_and(shares > self.earliest, ca.logic_or(down, flat))
        now = ca.if_else(scheduled, ca.logic_or(down, touches), lands)
        swings, left = ca.logic_not(scheduled), (1 - shares) * walk.gait.flight
        late = ca.logic_and(ca.logic_and(scheduled, ca.logic_not(now)), above < -self.missed)
        return Felt(now, ca.logic_and(swings, now), late, left)

    def stands(self, walk: Walk, t: Any, forces: ca.SX, planned: ca.SX) -> ca.SX:
        """Return which contacts (nc,) stand at a tick of the law.

        Args:
            walk, t, forces: as for `felt`.
            planned: (nc,) those of the plan in this interval.
        """
        scheduled, shares = ca.SX(walk.on_ground(t)), ca.SX(walk.swing_share(t))
        touches, flat = self._touches(forces)
        early, lands = ca.logic_and(shares > self.earliest, flat), ca.logic_and(scheduled, touches)
        return ca.logic_or(planned, ca.logic_or(lands, early))

    def _touches(self, forces: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return which contacts (nc,) are those of feet that touch, and that lie flat."""
        normal = forces[::3]
        total, least = ca.SX(normal), ca.SX(normal)
        for foot in self.feet:
            own = ca.vertcat(*(normal[i] for i in foot))
            for i in foot:
                total[i], least[i] = ca.sum1(own), len(foot) * ca.mmin(own)
        touches = total >= self.on_force
        return touches, ca.logic_and(touches, least >= self.off_force)


def felt_contacts(
    rule: TouchDown, system: System, contacts: Sequence[Contact], height: float
) -> FeltContacts:
    """Return the rule of a robot, with forces by its weight where none are given.

    Args:
        rule: forces, speed and depth.
        system: the robot.
        contacts: its feet.
        height: of its base over them, m.
    """
    feet = tuple(group.members for group in contact_groups_of(system, contacts))
    share = ON_SHARE * robot_weight(system) / len(feet)
    on = share if rule.on_force is None else rule.on_force
    off = OFF_SHARE * on if rule.off_force is None else rule.off_force
    return FeltContacts(feet, on, off, rule.earliest, rule.speed, rule.depth, MISSED * height)
