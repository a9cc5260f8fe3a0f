"""Which feet stand now, by the schedule or by measured forces, and where the others come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca

from mbcasadi.mpc.legged.footsteps import Motion
from mbcasadi.mpc.legged.gait import Gait, Path
from mbcasadi.mpc.legged.nominal_stance import NominalStance
from mbcasadi.mpc.legged.touch_down import (
    FootFlags,
    FootForce,
    TouchDown,
    next_flags,
    searched_place,
)
from mbcasadi.qp.input_guard import is_bounded


@dataclass(frozen=True)
class Standing:
    """The feet at one tick, in axes of the ground.

    Attributes:
        on: (feet,) one for each contact that stands, else zero.
        scheduled: (feet,) the same by the schedule.
        places: (3,) of the contacts, m.
        takeoffs: (3,) where each contact left the ground, its place where it stands.
        foothold_heights: m, of each contact.
        rise: of the ground below the body since q0, m.
        late: place and velocity (3,) of each contact if it is late; none by the schedule.
        flags: of each foot, to be remembered; none by the schedule.
    """

    on: ca.SX
    scheduled: ca.SX
    places: list[ca.SX]
    takeoffs: list[ca.SX]
    foothold_heights: list[ca.SX]
    rise: ca.SX
    late: tuple[tuple[ca.SX, ca.SX], ...] = ()
    flags: tuple[ca.SX, ...] = ()

    def paths(self, swings: list[Path[ca.SX]]) -> list[Path[ca.SX]]:
        """Return the path of each contact: at rest, in its swing, or downwards while it is late."""
        zero, found = ca.SX.zeros(3), []
        for i, swing in enumerate(swings):
            moving = swing
            if self.late:
                searched = Path(*self.late[i], zero)
                moving = _chosen(self.scheduled[i], searched, swing)
            found.append(_chosen(self.on[i], Path(self.places[i], zero, zero), moving))
        return found

    def memory(self, paths: list[Path[ca.SX]]) -> ca.SX:
        """Return what is remembered of contacts and feet; nothing by the schedule."""
        if not self.late:
            return ca.SX(0, 1)
        return ca.vertcat(*(path.position for path in paths), *self.flags)

    def expected(self, planned: ca.SX, now: Motion, gait: Gait, ahead: float, first: bool) -> ca.SX:
        """Return which contacts stand after `ahead` s, from the schedule then."""
        if not self.late:
            return planned
        swings_on = (1 - now.shares) * gait.flight > ahead
        early = ca.logic_and(ca.logic_and(self.on, ca.logic_not(self.scheduled)), swings_on)
        stands = ca.logic_or(planned, early)
        return ca.logic_and(stands, self.on) if first else stands


class Scheduled(NamedTuple):
    """The contacts by the schedule, and where they are.

    Attributes:
        on: (nc,) which contacts stand.
        shares: (nc,) of their swings that are over.
        places: (3,) of the contacts, m.
        takeoffs: (3,) remembered places where they left the ground, m.
    """

    on: ca.SX
    shares: ca.SX
    places: list[ca.SX]
    takeoffs: list[ca.SX]


def standing_by_schedule(stance: NominalStance, contacts: Scheduled) -> Standing:
    """Return the feet of a level floor at the height of q0."""
    on, _, places, takeoffs = contacts
    heights = [ca.SX(float(z)) for z in stance.places[:, 2]]
    return Standing(on, on, places, lift_places(on, places, takeoffs), heights, ca.SX(0))


def standing_by_force(
    rule: TouchDown,
    stance: NominalStance,
    feet: Sequence[Sequence[int]],
    contacts: Scheduled,
    forces: ca.SX,
    memory: ca.SX,
    period: float,
) -> Standing:
    """Return the feet by their measured forces.

    Args:
        rule: when a foot stands.
        stance: the robot at q0.
        feet: the contacts of each foot.
        contacts: by the schedule.
        forces: (3 nc,) n, t1, t2 of each contact, N.
        memory: remembered references of the contacts and flags of the feet.
        period: s, of a tick.
    """
    scheduled, shares, places, takeoffs = contacts
    count = len(places)
    last, flags = ca.vertsplit(memory[: 3 * count], 3), ca.vertsplit(memory[3 * count :], 2)
    on, found = _by_force(rule, feet, scheduled, shares, forces, flags)
    left = lift_places(on, places, takeoffs)
    ground = [left[i][2] - float(stance.places[i, 2]) for i in range(count)]
    stands = ca.sum1(on)
    below = ca.dot(on, ca.vertcat(*ground)) / ca.fmax(stands, 1)
    rise = ca.sum1(ca.vertcat(*ground)) / count
    level = ca.if_else(stands > 0, below, rise)
    heights = [level + float(z) for z in stance.places[:, 2]]
    late = tuple(
        searched_place(
            rule, ca.if_else(is_bounded(last[i]), last[i], places[i]), heights[i], period
        )
        for i in range(count)
    )
    return Standing(on, scheduled, places, left, heights, rise, late, found)


def _by_force(
    rule: TouchDown,
    feet: Sequence[Sequence[int]],
    scheduled: ca.SX,
    shares: ca.SX,
    forces: ca.SX,
    flags: list[ca.SX],
) -> tuple[ca.SX, tuple[ca.SX, ...]]:
    """Return which contacts stand, and the flags of the feet behind this tick."""
    on, found = ca.SX.zeros(scheduled.numel()), []
    for foot, before in zip(feet, flags, strict=True):
        normal = ca.vertcat(*(forces[3 * i] for i in foot))
        force = FootForce(ca.sum1(normal), len(foot) * ca.mmin(normal))
        first, flag = foot[0], FootFlags(before[0], before[1])
        now = next_flags(rule, flag, scheduled[first], shares[first], force)
        found.append(ca.vertcat(*now))
        for i in foot:
            on[i] = now.stands
    return on, tuple(found)


def lift_places(on: ca.SX, places: list[ca.SX], remembered: list[ca.SX]) -> list[ca.SX]:
    """Return where each contact left the ground, its place where it stands."""
    return [
        ca.if_else(ca.logic_or(on[i], ca.logic_not(is_bounded(takeoff))), places[i], takeoff)
        for i, takeoff in enumerate(remembered)
    ]


def _chosen(condition: ca.SX, first: Path[ca.SX], second: Path[ca.SX]) -> Path[ca.SX]:
    """Return the first path where the condition holds, else the second."""
    return Path(*(ca.if_else(condition, a, b) for a, b in zip(first, second, strict=True)))
