"""Feet that rise one after the other, and a push: what `init` lets a standing robot do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription
from mbcasadi.anatomy.feet import RobotFoot
from mbcasadi.errors import ProblemError
from mbcasadi.system import GeometryContact, System

Array = NDArray[np.float64]

UP = 0.08
"""Of a foot, in lengths of its leg."""
EACH = 2.5
"""Seconds from foot to foot."""
OVER, RAISED, LOWERED, STANDS = 1.0, 1.4, 1.7, 2.15
"""Seconds after that: the weight is on the others; the foot is up; goes down; stands again."""
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
        up: m.
        start: s.
    """

    frame: str
    kind: str
    flat: bool
    contacts: tuple[str, ...]
    step: tuple[float, float]
    up: float
    start: float

    @property
    def times(self) -> tuple[float, ...]:
        """S: off the ground, up, down again, and on the ground."""
        return tuple(round(self.start + t, 4) for t in (OVER, RAISED, LOWERED, STANDS))


@dataclass(frozen=True)
class Balance:
    """All lifts, the way back, and the push.

    Attributes:
        lifts: in turn.
        back: (2,) way of the centre of mass after the last one, m.
        push: (3,) N.
        sway, tilt: largest errors of the centre of mass, m, and of the base, rad.
    """

    lifts: tuple[Lift, ...]
    back: tuple[float, float]
    push: tuple[float, float, float]
    sway: float
    tilt: float = TILT

    @property
    def end(self) -> float:
        """When all feet stand again, s."""
        return EACH * len(self.lifts)

    def terms(self, axis: int) -> list[tuple[float, float]]:
        """Return the steps of the centre of mass along x or y, m, and when they begin, s."""
        steps = [(each.step[axis], each.start) for each in self.lifts]
        return [*steps, (self.back[axis], self.end)]


def balance_of(
    robot: RobotDescription, system: System, q: Array, contacts: Sequence[GeometryContact]
) -> Balance:
    """Return how a robot lifts each of its feet in turn.

    Args:
        robot: with legs.
        system: of its model.
        q: (nq,) in which it stands.
        contacts: of its feet.

    Raises:
        ProblemError: the feet that stand while one is up span no area, as one foot of two points.
    """
    legs = [leg for leg in robot.limbs_of("leg") if leg.foot is not None]
    feet = [leg.foot for leg in legs if leg.foot is not None]
    middles = np.array([_middle(system, q, foot) for foot in feet])
    center = np.array(system.center_of_mass(q, np.zeros(system.nv))[0], dtype=float).ravel()[:2]
    lifts, last = [], np.zeros(2)
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
        point = foot.shape == "point" and len(foot.geoms) == 1
        lifts.append(
            Lift(
                frame=foot.geoms[0] if point else foot.body,
                kind="geom" if point else "body",
                flat=not point,
                contacts=tuple(c.name for c in contacts if c.geom2 in foot.geoms),
                step=_pair(way - last),
                up=UP * leg.length,
                start=EACH * k,
            )
        )
        last = way
    assert system.tree is not None
    weight = sum(body.mass for body in system.tree.bodies) * float(
        np.linalg.norm(system.tree.gravity)
    )
    push = PUSH.get(len(feet), 0.2) * weight * robot.left
    sway = SWAY * float(np.mean([leg.length for leg in legs]))
    return Balance(tuple(lifts), _pair(-last), (float(push[0]), float(push[1]), 0.0), sway)


def _middle(system: System, q: Array, foot: RobotFoot) -> Array:
    """Return the (2,) middle of a foot, m."""
    place, rotation = (np.array(each) for each in system.frame(foot.body, "body").pose(q)[:2])
    return np.asarray(place.ravel()[:2] + (rotation @ foot.points.mean(axis=0))[:2])


def _width(contacts: Sequence[GeometryContact], q: Array) -> float:
    """Return the width of what contacts span on the ground, across its longest direction, m."""
    points = np.array([np.array(each.gap(q)[1]).ravel()[:2] for each in contacts])
    if len(points) < 3:
        return 0.0
    points -= points.mean(axis=0)
    across = points @ np.linalg.svd(points, full_matrices=False)[2][1]
    return float(np.ptp(across))


def _pair(way: Array) -> tuple[float, float]:
    x, y = np.round(way, 6) + 0.0  # no -0
    return float(x), float(y)
