"""Contacts that measured forces show to be there before, or not yet after, a gait says so.

F is the sum of the normal forces of the n contacts of a foot, f the least of them:

    early:  the gait has the foot in the air, the share `earliest` of its swing is over,
            F >= on_force and n f >= off_force: it touches flat and stands from then on;
    late:   the foot stands by the gait for less than `SEARCH` of its stance, and F < on_force.

Nothing is remembered, so that plan and law say the same of the same measurement.
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

SEARCH = 0.2
"""Share of a stance in which a foot without force counts as late; later it is only unloaded."""

ON_SHARE = 0.1
"""Force from which on a foot touches, by its share of the weight where all stand."""

OFF_SHARE = 0.1
"""`off_force` by `on_force`, unless it is given."""


class Felt(NamedTuple):
    """Which contacts are early and late, and the time that is left of their swings: (nc,) each."""

    early: ca.SX
    late: ca.SX
    left: ca.SX

    def on_now(self, scheduled: ca.SX) -> ca.SX:
        """Return which contacts stand."""
        return ca.logic_and(ca.logic_or(scheduled, self.early), ca.logic_not(self.late))

    def on_later(self, scheduled: ca.SX, ahead: ca.SX | float, interval: int) -> ca.SX:
        """Return which contacts stand in an interval of a plan, a time ahead, s.

        Late ones swing in its first two, and land behind them.
        """
        stands = ca.logic_or(scheduled, ca.logic_and(self.early, self.left > ahead))
        return ca.logic_and(stands, ca.logic_not(self.late)) if interval < LANDS else stands


@dataclass(frozen=True)
class FeltContacts:
    """The rule, for a robot.

    Attributes:
        feet: the contacts of each foot.
        on_force, off_force: N.
        earliest: share of a swing before which a touch does not count.
        speed, depth: with which a late foot goes down, m/s, and how far, m.
    """

    feet: tuple[tuple[int, ...], ...]
    on_force: float
    off_force: float
    earliest: float
    speed: float
    depth: float

    def lower(self, place: ca.SX, ahead: ca.SX | float) -> ca.SX:
        """Return where a late foot at a place (3,), ground axes, is to be a time ahead, s."""
        return ca.vertcat(place[:2], place[2] - ca.fmin(self.speed * ahead, self.depth))

    def felt(self, walk: Walk, t: Any, forces: ca.SX) -> Felt:
        """Return what measured forces (3 nc,), n t1 t2 of each contact in N, say at t, s."""
        scheduled, shares = ca.SX(walk.on_ground(t)), ca.SX(walk.swing_share(t))
        stood = ca.SX(walk.stance_share(t))
        normal = ca.vertcat(*(forces[3 * i] for i in range(scheduled.numel())))
        total, least = ca.SX(normal), ca.SX(normal)
        for foot in self.feet:
            own = ca.vertcat(*(normal[i] for i in foot))
            for i in foot:
                total[i], least[i] = ca.sum1(own), len(foot) * ca.mmin(own)
        touches = total >= self.on_force
        flat = ca.logic_and(touches, least >= self.off_force)
        swings = ca.logic_and(ca.logic_not(scheduled), shares > self.earliest)
        early = ca.logic_and(swings, flat)
        late = ca.logic_and(ca.logic_and(scheduled, stood < SEARCH), ca.logic_not(touches))
        return Felt(early, late, (1 - shares) * walk.gait.flight)


def felt_contacts(rule: TouchDown, system: System, contacts: Sequence[Contact]) -> FeltContacts:
    """Return the rule of a robot, with forces by its weight where none are given."""
    feet = tuple(group.members for group in contact_groups_of(system, contacts))
    share = ON_SHARE * robot_weight(system) / len(feet)
    on = share if rule.on_force is None else rule.on_force
    off = OFF_SHARE * on if rule.off_force is None else rule.off_force
    return FeltContacts(feet, on, off, rule.earliest, rule.speed, rule.depth)
