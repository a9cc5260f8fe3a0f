"""Feet that rise one after the other, and a push: what `init` lets a standing robot do.

The centre of mass goes from over some feet to over others by ``x(t) = D s(t / T)``. As that of a
linear inverted pendulum, the centre of pressure is at ``x - h/g ẍ``: behind x at the start, ahead
of it while it brakes. T is so long that it keeps within a share of what the feet span that way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription
from mbcasadi.anatomy.feet import RobotFoot
from mbcasadi.control.inverse_dynamics.contacts.creeping import SHARE as GROUND_SHARE
from mbcasadi.errors import ProblemError
from mbcasadi.system import GeometryContact, System
from mbcasadi.validation.spec.leaning import PoseOver, Stance

Array = NDArray[np.float64]

UP = 0.08
"""Of a foot, in lengths of its leg."""
SHORTEST = 0.8
"""Seconds in which the centre of mass goes over other feet, at least."""
OVER, RAISED, LOWERED, STANDS, EACH = 0.2, 0.6, 0.9, 1.35, 1.7
"""Seconds after that: the weight is on the others; the foot is up; goes down; stands; the next."""
PRESSED = 0.5
"""Of the way from where the centre of mass rests to the border of the feet, along its motion."""
SHARE = {4: 0.7, 2: 1.0}
"""Of the way of the centre of mass to the middle of the other feet, by the number of feet."""
PUSH = {4: 0.6, 2: 0.2}
"""Of the weight, sideways for 0.1 s, by the number of feet."""
NARROW = 0.02
"""Least width of what stands while a foot is up, in lengths of a leg."""
SWAY, TILT = 0.05, 0.2
"""Largest error of the centre of mass, in lengths of a leg, and of the base's orientation, rad."""


@dataclass(frozen=True)
class Lift:
    """A foot that rises and stands again.

    Attributes:
        frame, kind: of its task, which holds its orientation too where `flat`.
        flat: whether it is no point.
        contacts: entries of the mask.
        step: (2,) way of the centre of mass from where it was for the foot before, m.
        takes: time of this way, s.
        lean: (2,) turn of the base about the world's x and y meanwhile, rad.
        up: m.
        start: s.
    """

    frame: str
    kind: str
    flat: bool
    contacts: tuple[str, ...]
    step: tuple[float, float]
    takes: float
    lean: tuple[float, float]
    up: float
    start: float

    @property
    def times(self) -> tuple[float, ...]:
        """S: off the ground, up, down again, and on the ground."""
        over = self.start + self.takes
        return tuple(round(over + t, 4) for t in (OVER, RAISED, LOWERED, STANDS))


@dataclass(frozen=True)
class Balance:
    """All lifts, the way back, and the push.

    Attributes:
        lifts: in turn.
        back: (2,) way of the centre of mass after the last one, m.
        upright: (2,) turn of the base meanwhile, rad.
        takes: time of this way, s.
        end: s, when it begins: all feet stand again.
        push: (3,) N.
        sway, tilt: largest errors of the centre of mass, m, and of the base, rad.
        twisting: weight of forces along the ground of soles, 1/kg²; 0 for feet that are points.
            The least torques twist soles against each other, and they turn on soft friction.
    """

    lifts: tuple[Lift, ...]
    back: tuple[float, float]
    upright: tuple[float, float]
    takes: float
    end: float
    push: tuple[float, float, float]
    sway: float
    tilt: float = TILT
    twisting: float = 0.0

    @property
    def rest(self) -> float:
        """When the centre of mass is back, and at rest, s."""
        return round(self.end + self.takes + OVER, 4)

    def terms(self, axis: int) -> list[tuple[float, float, float]]:
        """Return steps of the centre of mass along x or y, m, their times and starts, s."""
        steps = [(each.step[axis], each.takes, each.start) for each in self.lifts]
        return [*steps, (self.back[axis], self.takes, self.end)]

    def leans(self, axis: int) -> list[tuple[float, float, float]]:
        """Return turns of the base about x or y, rad, their times and starts, s; () for none."""
        steps = [(each.lean[axis], each.takes, each.start) for each in self.lifts]
        steps.append((self.upright[axis], self.takes, self.end))
        return steps if any(by for by, _, _ in steps) else []


def balance_of(
    robot: RobotDescription,
    system: System,
    q: Array,
    contacts: Sequence[GeometryContact],
    base: str,
) -> Balance:
    """Return how a robot lifts each of its feet in turn.

    Args:
        robot: with legs.
        system: of its model.
        q: (nq,) in which it stands.
        contacts: of its feet.
        base: body of the base.

    Raises:
        ProblemError: the feet that stand while one is up span no area, as one foot of two points.
    """
    legs = [leg for leg in robot.limbs_of("leg") if leg.foot is not None]
    feet = [leg.foot for leg in legs if leg.foot is not None]
    middles = np.array([_middle(system, q, foot) for foot in feet])
    mass = np.array(system.center_of_mass(q, np.zeros(system.nv))[0], dtype=float).ravel()
    center, points = mass[:2], _points(contacts, q)
    assert system.tree is not None
    g = float(np.linalg.norm(system.tree.gravity))
    below = np.mean([np.array(each.gap(q)[1]).ravel()[2] for each in contacts])
    slowness = (mass[2] - float(below)) / g

    def takes(begin: Array, end: Array) -> float:
        return _duration(center + begin, center + end, points, slowness)

    lifts, last, start = list[Lift](), np.zeros(2), 0.0
    lean, bodies = np.zeros(2), [foot.body for foot in feet]
    for k, (leg, foot) in enumerate(zip(legs, feet, strict=True)):
        others = [each for each in contacts if each.geom2 not in foot.geoms]
        if _width(others, q) < NARROW * leg.length:
            raise ProblemError(
                f"task 'lift' of '{robot.name}': while '{foot.body}' is up, it would stand on "
                f"{', '.join(repr(each.name) for each in others)}, which span no area: nothing "
                "keeps it from falling sideways; expected feet that stand on an area each; try "
                "task squat or walk"
            )
        way = SHARE.get(len(feet), 1.0) * (np.delete(middles, k, axis=0).mean(axis=0) - center)
        over = Stance(system, q, base, bodies, others).lean_over(way)
        if over.overloaded:
            raise ProblemError(_too_weak(robot, foot, over))
        point = foot.shape == "point" and len(foot.geoms) == 1
        lifts.append(
            Lift(
                frame=foot.geoms[0] if point else foot.body,
                kind="geom" if point else "body",
                flat=not point,
                contacts=tuple(c.name for c in contacts if c.geom2 in foot.geoms),
                step=_pair(way - last),
                takes=takes(last, way),
                lean=_pair(over.lean - lean),
                up=UP * leg.length,
                start=start,
            )
        )
        lean, last, start = over.lean, way, round(start + lifts[-1].takes + EACH, 4)
    total = sum(body.mass for body in system.tree.bodies)
    push = PUSH.get(len(feet), 0.2) * total * g * robot.left
    sway = SWAY * float(np.mean([leg.length for leg in legs]))
    return Balance(
        lifts=tuple(lifts),
        back=_pair(-last),
        upright=_pair(-lean),
        takes=takes(last, np.zeros(2)),
        end=start,
        push=(float(push[0]), float(push[1]), 0.0),
        sway=sway,
        twisting=GROUND_SHARE / total**2 if lifts[0].flat else 0.0,
    )


def _too_weak(robot: RobotDescription, foot: RobotFoot, over: PoseOver) -> str:
    """Return what a robot cannot carry while a foot is up."""
    names = ", ".join(repr(name) for name in over.overloaded)
    return (
        f"task 'lift' of '{robot.name}': while '{foot.body}' is up, the weight is more than "
        f"{names} can carry; expected actuators that hold the robot on its other feet; try task "
        "squat or walk"
    )


def _duration(begin: Array, end: Array, points: Array, slowness: float) -> float:
    """Return the time in which the centre of mass goes from one place to another, s.

    Args:
        begin, end: (2,) places, m.
        points: (n, 2) on which the robot stands, m.
        slowness: height of the centre of mass over g, s².
    """
    way = float(np.linalg.norm(end - begin))
    if way == 0.0:
        return SHORTEST
    along = points @ (end - begin) / way
    ahead = along.max() - end @ (end - begin) / way
    behind = begin @ (end - begin) / way - along.min()
    margin = max(0.0, PRESSED * min(ahead, behind))  # m beyond either end
    x = np.linspace(0.5, 1.0, 200)[:-1]  # of the time; the first half is the second mirrored
    left = 1 - x**3 * (10 - 15 * x + 6 * x**2)
    slope = np.abs(60 * x - 180 * x**2 + 120 * x**3)
    longest = np.sqrt(slowness * way * np.max(slope / (margin + way * left)))
    return max(SHORTEST, float(np.ceil(10 * longest) / 10))


def _points(contacts: Sequence[GeometryContact], q: Array) -> Array:
    """Return the (n, 2) places of contacts on the ground, m."""
    return np.array([np.array(each.gap(q)[1]).ravel()[:2] for each in contacts]).reshape(-1, 2)


def _middle(system: System, q: Array, foot: RobotFoot) -> Array:
    """Return the (2,) middle of a foot, m."""
    place, rotation = (np.array(each) for each in system.frame(foot.body, "body").pose(q)[:2])
    return np.asarray(place.ravel()[:2] + (rotation @ foot.points.mean(axis=0))[:2])


def _width(contacts: Sequence[GeometryContact], q: Array) -> float:
    """Return the width of what contacts span on the ground, across its longest direction, m."""
    points = _points(contacts, q)
    if len(points) < 3:
        return 0.0
    points -= points.mean(axis=0)
    across = points @ np.linalg.svd(points, full_matrices=False)[2][1]
    return float(np.ptp(across))


def _pair(way: Array) -> tuple[float, float]:
    x, y = np.round(way, 6) + 0.0  # no -0
    return float(x), float(y)
