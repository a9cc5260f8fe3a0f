"""How a wheeled base drives: its wheels, the point that follows a path, and how fast it can.

A base whose wheels have rollers, or that slides along two axes, follows position and heading. Any
other one follows a point ahead of its axle, by half the distance of the outermost wheels: there
both wheels turn equally fast for a motion ahead as for one to the side, and the heading follows
(input-output linearisation of the unicycle). The path is a figure of eight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription
from mbcasadi.anatomy.links import Links
from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.contacts.wheels import wheel_rows
from mbcasadi.description import RigidTree, Wheel
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Ground
from mbcasadi.system import GeometryContact, System, contacts_of
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import require_ranges

Array = NDArray[np.float64]
UP = np.array([0.0, 0.0, 1.0])

FREQUENCY = 0.2
"""Hz, of a figure of eight, where the wheels turn that fast."""

SLIDES = 1.0
"""M; length of the figure of a base without wheels."""

TURN = 0.5
"""Rad, there and back, of a base that turns as it likes."""

CLOSE = 0.02
"""Largest error on the path, of its length."""

RAMP = 0.25
"""Share of the figure in which it begins, and in which it ends."""

RESERVE = 0.5
"""Share of the largest speed of the wheels that the path needs."""

SLOWER = 0.8
"""Each speed that is tried, of the one before; `TRIES` of them."""
TRIES = 20

ON_GROUND = 2e-3
"""M above the lowest wheel; what is as low carries the base, too."""

SAME_LINE = 0.1
"""Angle, rad, and share of the track, from which on axles are not on one line."""


@dataclass(frozen=True)
class WheelContact:
    """A wheel of the file.

    Attributes:
        body: that turns.
        joint: of the wheel.
        friction: Coulomb coefficient.
        wheel: its disc.
    """

    body: str
    joint: str
    friction: float
    wheel: Wheel


@dataclass(frozen=True)
class Drive:
    """What a wheeled base does.

    Attributes:
        wheels: that touch the ground.
        casters: contacts of what else touches it, which only carries.
        offset: (3,) point of the base that follows the path, in its axes, m.
        turns: whether the heading follows too.
        terms: axis → terms of the reference, as TOML.
        duration: s.
        bound: m, largest error.
    """

    wheels: tuple[WheelContact, ...]
    casters: tuple[str, ...]
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


def drive_of(robot: RobotDescription, system: System, q: Array) -> Drive:
    """Return how a wheeled base drives, that stands at q (nq,).

    Raises:
        ProblemError: it has no wheels that actuators turn, or that they turn fast enough to move;
            wheels skid when it turns; rollers that do not turn.
    """
    if robot.base == "planar":
        return _figure(robot, (), (), (0.0, 0.0, 0.0), SLIDES, FREQUENCY, turns=True)
    links = Links(_tree(system), q)
    wheels = tuple(_wheel(system, links, link) for link in _wheel_links(robot, links))
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
    frequency = _frequency(robot, system, q, wheels, track)
    own, standing = _of_wheels(robot, links), wheels_on_plane(robot, system, q)
    casters = tuple(each.name for each in standing if each.geom2 not in own)
    return _figure(robot, wheels, casters, offset, track, frequency, turns=rolls)


def _figure(
    robot: RobotDescription,
    wheels: tuple[WheelContact, ...],
    casters: tuple[str, ...],
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
    return Drive(wheels, casters, offset, turns, terms, duration, CLOSE * track)


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


def _tree(system: System) -> RigidTree:
    assert system.tree is not None  # the robot was read from a model
    return system.tree


def _plane(system: System) -> str:
    return next(geom.name for geom in _tree(system).geoms if geom.kind == "plane")


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


def _frequency(
    robot: RobotDescription,
    system: System,
    q: Array,
    wheels: Sequence[WheelContact],
    track: float,
) -> float:
    """Return at how many Hz the figure's fastest motion, ahead or turning, is one of the wheels.

    Raises:
        ProblemError: at none.
    """
    able = _force_ranges(system)
    _require_motors(robot, system, able, q, _rolling(robot, system, q, wheels, (1.0, 0.0)))
    frequency = FREQUENCY
    for _ in range(TRIES):
        fastest = np.sqrt(2) * track / 2 * 2 * np.pi * frequency / RESERVE
        motions = ((fastest, 0.0), (0.0, 2 * fastest / track))
        if all(_can(robot, system, able, q, wheels, motion) for motion in motions):
            return frequency
        frequency *= SLOWER
    raise ProblemError(
        f"task 'drive' of '{robot.name}': its actuators do not turn the wheels against damping "
        f"and dry friction, even at {fastest:.3g} m/s; expected larger ranges of control or force"
    )


def _force_ranges(system: System) -> ca.Function:
    """Return (q, v) → moment, lower, upper of the actuators, passive forces, and their bias."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    act = ca.SX(system.na, 1) if system.na else None
    at = actuator_model(system, require_ranges(system, None, None), 1.0, q, v, act)
    passive = system.passive_force(q, v)
    outputs = [at.moment, at.lower, at.upper, passive, at.bias]
    return ca.Function("ranges", [q, v], [ca.densify(x) for x in outputs])


def _require_motors(
    robot: RobotDescription, system: System, able: ca.Function, q: Array, v: Array
) -> None:
    """Raise `ProblemError` where servos turn the wheels: their force changes as wheels roll.

    A servo keeps the speed of a wheel that slips, so that slip does not end.
    """
    still, rolls = (np.array(able(q, each)[4]).ravel() for each in (0 * v, v))
    servos = [n for n, a, b in zip(system.actuator_names, still, rolls, strict=True) if a != b]
    if servos:
        raise ProblemError(
            f"task 'drive' of '{robot.name}': {', '.join(servos)} are servos, which keep wheels "
            "slipping that slip; expected motors"
        )


def _can(
    robot: RobotDescription,
    system: System,
    able: ca.Function,
    q: Array,
    wheels: Sequence[WheelContact],
    motion: tuple[float, float],
) -> bool:
    """Return whether actuators keep up a motion, (m/s, rad/s), against what resists the wheels."""
    import scipy.optimize

    places = {joint.name: joint.dof for joint in _tree(system).joints}
    dofs = [places[each.joint] for each in wheels]
    v = _rolling(robot, system, q, wheels, motion)
    moment, lower, upper, passive, _ = (np.array(x) for x in able(q, v))
    losses = np.zeros(system.nv)
    for joint in _tree(system).joints:
        if joint.name in places and joint.kind in ("hinge", "slide"):
            losses[joint.dof] = joint.friction_loss
    need = -passive.ravel() + losses * np.sign(v)
    ends = np.column_stack([lower.ravel(), upper.ravel()])
    bounds = [(a if np.isfinite(a) else None, b if np.isfinite(b) else None) for a, b in ends]
    found = scipy.optimize.linprog(
        np.zeros(len(bounds)), A_eq=moment[dofs, :], b_eq=need[dofs], bounds=bounds
    )
    return bool(found.status == 0)


def _rolling(
    robot: RobotDescription,
    system: System,
    q: Array,
    wheels: Sequence[WheelContact],
    motion: tuple[float, float],
) -> Array:
    """Return v (nv,) of a base that moves ahead, m/s, and turns, rad/s, as its wheels roll."""
    tree = _tree(system)
    free = next(joint for joint in tree.joints if joint.kind == "free")
    dofs = [joint.dof for each in wheels for joint in tree.joints if joint.name == each.joint]
    v, axes = np.zeros(system.nv), ca.DM(contact_axes(UP))
    R = np.array(system.frame(robot.base_body, "body").pose(q)[1])
    v[free.dof : free.dof + 3] = motion[0] * np.append(robot.ahead, 0.0)
    v[free.dof + 3 : free.dof + 6] = R.T @ (motion[1] * UP)
    state = ca.SX(ca.DM(q)), ca.SX(ca.DM(v))
    frames = [system.frame(each.body, "body") for each in wheels]
    J = np.vstack(
        [
            np.array(ca.evalf(wheel_rows(frame, each.wheel, axes, state).J))
            for frame, each in zip(frames, wheels, strict=True)
        ]
    )
    v[dofs] = np.linalg.lstsq(J[:, dofs], -J @ v, rcond=None)[0]
    return v
