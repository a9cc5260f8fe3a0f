"""How a wheeled base drives: its wheels, the point that follows a path, and how fast it can.

A base whose wheels have rollers, or that slides along two axes, follows position and heading. Any
other one follows a point ahead of its axle, by half the distance of the outermost wheels: there
both wheels turn equally fast for a motion ahead as for one to the side, and the heading follows
(input-output linearisation of the unicycle). The path is a figure of eight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription
from mbcasadi.anatomy.links import Links
from mbcasadi.description import Wheel
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Ground
from mbcasadi.shapes import require_positive
from mbcasadi.system import GeometryContact, System, contacts_of
from mbcasadi.validation.spec.wheel_speeds import (
    FREQUENCY,
    UP,
    WheelContact,
    fastest_of,
    path_frequency,
    tree_of,
)

Array = NDArray[np.float64]

SLIDES = 1.0
"""M; length of the figure of a base without wheels."""

TURN = 0.5
"""Rad, there and back, of a base that turns as it likes."""

CLOSE = 0.02
"""Largest error on the path, of its length."""

RAMP = 0.25
"""Share of the figure in which it begins, and in which it ends."""

ON_GROUND = 2e-3
"""M above the lowest wheel; what is as low carries the base, too."""

SAME_LINE = 0.1
"""Angle, rad, and share of the track, from which on axles are not on one line."""


@dataclass(frozen=True)
class Rolling:
    """What a base stands on.

    Attributes:
        wheels: that touch the ground.
        casters: contacts of what else touches it, which only carries.
    """

    wheels: tuple[WheelContact, ...]
    casters: tuple[str, ...]


@dataclass(frozen=True)
class Drive(Rolling):
    """What a wheeled base does.

    Attributes:
        offset: (3,) point of the base that follows the path, in its axes, m.
        turns: whether the heading follows too.
        terms: axis → terms of the reference, as TOML.
        duration: s.
        bound: m, largest error.
    """

    offset: tuple[float, ...]
    turns: bool
    terms: dict[str, str]
    duration: float
    bound: float

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints of the wheels."""
        return tuple(each.joint for each in self.wheels)


def ground_of_wheels(robot: RobotDescription, system: System) -> Ground:
    """Return a floor for wheels."""
    return Ground(feet=_of_wheels(robot, _links(robot, system)))


def wheels_on_plane(
    robot: RobotDescription, system: System, q: Array
) -> tuple[GeometryContact, ...]:
    """Return the contacts of the wheels with the plane, and of what is as low as they are."""
    assert system.tree is not None
    links = Links(system.tree, q)
    own = _of_wheels(robot, links)
    gaps = {each: float(each.gap(q)[0]) for each in contacts_of(system, ground=_plane(system), q=q)}
    lowest = min(gap for each, gap in gaps.items() if each.geom2 in own)
    return tuple(each for each, gap in gaps.items() if gap < lowest + ON_GROUND)


def rolling_of(robot: RobotDescription, system: System, q: Array) -> Rolling:
    """Return the wheels of a base, and what else carries it, in a pose (nq,)."""
    links = Links(tree_of(system), q)
    own, standing = _of_wheels(robot, links), wheels_on_plane(robot, system, q)
    return Rolling(
        wheels=tuple(_wheel(system, links, link) for link in _wheel_links(robot, links)),
        casters=tuple(each.name for each in standing if each.geom2 not in own),
    )


def drive_of(
    robot: RobotDescription, system: System, q: Array, speed: float | None = None
) -> Drive:
    """Return how a wheeled base drives.

    Args:
        robot: the base.
        system: of its model.
        q: (nq,) in which it stands.
        speed: the fastest on its path, m/s; by default that of 0.2 Hz, or what its wheels can.

    Raises:
        ProblemError: it has no wheels that actuators turn, or that they turn fast enough to move,
            or for this speed; wheels skid when it turns; rollers that do not turn.
    """
    if speed is not None:
        require_positive(speed=speed)
    if robot.base == "planar":
        _require_driven_base(robot, system)
        frequency = FREQUENCY if speed is None else speed / fastest_of(SLIDES)
        return _figure(robot, Rolling((), ()), (0.0, 0.0, 0.0), SLIDES, frequency, turns=True)
    links = Links(tree_of(system), q)
    on = rolling_of(robot, system, q)
    wheels = on.wheels
    driven = {*system.joint_roles.driven, *system.joint_roles.dependent}
    if not driven.intersection(each.joint for each in wheels):
        raise ProblemError(
            f"task 'drive' of '{robot.name}': no actuator turns its wheels; expected one of each"
        )
    centers, axles = _places(links, robot, wheels)
    track = float(np.ptp(centers @ np.append(robot.left, 0.0)))
    rolls = all(each.wheel.roller is not None for each in wheels)
    if not rolls and not _on_one_line(centers, axles):
        raise ProblemError(
            f"task 'drive' of '{robot.name}': its {len(wheels)} wheels without rollers are on "
            "several axles, and skid when it turns; expected two on one line, or rollers"
        )
    _require_rollers_turn(robot, links)
    point = centers.mean(axis=0) + (0.0 if rolls else 0.5 * track) * np.append(robot.ahead, 0.0)
    base = next(k for k in links.parents if links.name(k) == robot.base_body)
    p, R = links.pose(base)
    offset = tuple(float(x) for x in np.round(R.T @ (point - p), 4))
    frequency = path_frequency(robot, system, q, wheels, track, speed)
    return _figure(robot, on, offset, track, frequency, turns=rolls)


def _figure(
    robot: RobotDescription,
    on: Rolling,
    offset: tuple[float, ...],
    track: float,
    frequency: float,
    *,
    turns: bool,
) -> Drive:
    """Return one figure of eight, as long as the track and half as wide."""
    once = 1 / frequency
    along = (robot.ahead, track / 2, frequency)
    across = (robot.left, track / 4, 2 * frequency)
    ramp, stop = RAMP * once, (1 - RAMP) * once
    terms = {}
    for k, axis in enumerate("xy"):
        waves = [
            f"{{ amplitude = {size * way[k]:.4g}, frequency = {f:.4g}, ramp = {ramp:.4g}, "
            f"stop = {stop:.4g} }}"
            for way, size, f in (along, across)
            if abs(way[k]) > 1e-6
        ]
        terms[axis] = waves[0] if len(waves) == 1 else f"[{', '.join(waves)}]"
    if turns:
        half = f"duration = {0.4 * once:.4g}, start = "
        terms["rz"] = f"[{{ by = {TURN}, {half}0.0 }}, {{ by = -{TURN}, {half}{0.5 * once:.4g} }}]"
    duration = float(f"{once:.2g}") + 0.5
    return Drive(on.wheels, on.casters, offset, turns, terms, duration, CLOSE * track)


def _links(robot: RobotDescription, system: System) -> Links:
    assert system.tree is not None  # the robot was read from a model
    known = system.tree.keyframes.get(robot.keyframe or "", system.tree.q0)
    return Links(system.tree, np.array(known, dtype=float).ravel())


def _wheel_links(robot: RobotDescription, links: Links) -> list[int]:
    names = [limb.name for limb in robot.limbs_of("wheel")]
    return [link for link in links.parents if links.name(link) in names]


def _of_wheels(robot: RobotDescription, links: Links) -> tuple[str, ...]:
    """Return the names of the shapes of wheels and their rollers."""
    members = [member for link in _wheel_links(robot, links) for member in links.subtree(link)]
    return tuple(geom.name for member in members for geom in links.geoms(member))


def _wheel(system: System, links: Links, link: int) -> WheelContact:
    """Return the disc of a link about its hinge, and its rollers."""
    (hinge,) = links.joints(link)
    axis, anchor = links.axis(hinge), links.anchor(hinge)
    away = links.surface(link) - anchor
    along = away @ axis
    radii = np.linalg.norm(away - np.outer(along, axis), axis=1)
    center = anchor + 0.5 * (along.min() + along.max()) * axis
    p, R = links.pose(link)
    wheel = Wheel(
        axle=_rounded(R.T @ axis),
        radius=float(np.round(radii.max(), 6)),
        center=_rounded(R.T @ (center - p)),
        roller=_roller(links, link, axis),
    )
    geoms = [geom.name for k in links.subtree(link) for geom in links.geoms(k)]
    touching = contacts_of(system, ground=_plane(system), geoms=geoms, q=links.q)
    friction = float(min(touching[0].friction[:2]))
    return WheelContact(links.name(link), hinge.name, friction, wheel)


def _rounded(x: Array) -> tuple[float, float, float]:
    a, b, c = (float(value) + 0.0 for value in np.round(x, 6))
    return a, b, c


def _plane(system: System) -> str:
    return next(geom.name for geom in tree_of(system).geoms if geom.kind == "plane")


def _rollers(links: Links, link: int) -> list[int]:
    """Return the links with shapes that a wheel carries on hinges."""
    carried = (k for k in links.subtree(link) if k != link and links.geoms(k))
    return [k for k in carried if [joint.kind for joint in links.joints(k)] == ["hinge"]]


def _roller(links: Links, link: int, axle: Array) -> float | None:
    """Return the angle of the lowest roller's axis from the way in which the wheel rolls."""
    hinges = [links.joints(k)[0] for k in _rollers(links, link)]
    if not hinges:
        return None
    lowest = min(hinges, key=lambda hinge: float(links.anchor(hinge)[2]))
    ahead = np.cross(UP, axle)
    axis = links.axis(lowest)
    angle = float(np.arctan2(axis @ np.cross(UP, ahead), axis @ ahead))
    return float(np.round((angle + np.pi / 2) % np.pi - np.pi / 2, 4)) + 0.0


def _places(
    links: Links, robot: RobotDescription, wheels: Sequence[WheelContact]
) -> tuple[Array, Array]:
    """Return the centres (k, 3) and axles (k, 3) of wheels in the world."""
    own = _wheel_links(robot, links)
    centers = [links.place(k, np.array(w.wheel.center)) for k, w in zip(own, wheels, strict=True)]
    axles = [links.direction(k, np.array(w.wheel.axle)) for k, w in zip(own, wheels, strict=True)]
    return np.array(centers), np.array(axles)


def _on_one_line(centers: Array, axles: Array) -> bool:
    """Return whether the axles of wheels are on one line, about which the base may turn."""
    across = np.cross(UP, axles[0])
    apart = float(np.ptp(centers @ across))
    size = float(np.ptp(centers @ axles[0]))
    return apart < SAME_LINE * size and bool(np.all(np.abs(axles @ across) < SAME_LINE))


def _require_driven_base(robot: RobotDescription, system: System) -> None:
    """Raise `ProblemError` where a joint of a base that slides has no actuator."""
    tree = tree_of(system)
    own = [j.name for j in tree.joints if tree.bodies[j.body].name == robot.base_body]
    if idle := [name for name in own if name not in system.joint_roles.driven]:
        raise ProblemError(
            f"task 'drive' of '{robot.name}': no actuator drives {', '.join(idle)} of its base; "
            "expected one of each of its joints"
        )


def _require_rollers_turn(robot: RobotDescription, links: Links) -> None:
    """Raise `ProblemError` where dry friction keeps rollers from turning under the load."""
    tree, own = links.tree, _wheel_links(robot, links)
    load = sum(body.mass for body in tree.bodies) * float(np.linalg.norm(tree.gravity)) / len(own)
    for link in own:
        for k in _rollers(links, link):
            (hinge, *_), geom = links.joints(k), links.geoms(k)[0]
            axis = links.axis(hinge)
            away = links.points(geom) - links.anchor(hinge)
            radius = float(np.linalg.norm(away - np.outer(away @ axis, axis), axis=1).max())
            pulled, held = float(geom.friction[0]) * load, hinge.friction_loss / radius
            if held > pulled:
                raise ProblemError(
                    f"task 'drive' of '{robot.name}': dry friction of roller '{hinge.name}' holds "
                    f"{held:.3g} N, and the ground pulls with {pulled:.3g} N at most: it does not "
                    f"turn; expected a frictionloss below {pulled * radius:.2g} N m"
                )
