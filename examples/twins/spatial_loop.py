"""Closed chains of hinges in space whose last link is the ground; Bennett's four and Bricard's six.

`q` are the hinge angles. Link i turns about z of its own frame and lies along its x axis; the
next hinge is at its end, twisted about x: `H_i = H_(i-1) T_x(l) R_x(twist) R_z(q_i)`. Six
rows close the chain: three for the position and three for the orientation, the skew part of the
rotation. By a count of freedoms neither loop moves, yet both do: rank 3 of 4 columns (Bennett),
5 of 6 (Bricard), at every pose.

Lengths, twists and masses are those of mujoco_models/spatial_loop.xml and bricard.xml.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np

import mbcasadi as mb

from .energies import GRAVITY, capsule_inertia, coordinates

PIN_MASS, PIN_RADIUS, PIN_LENGTH = 0.05, 0.018, 0.05  # kg, m, m: a cylinder on each hinge's axis
LINK_RADIUS = 0.012  # m; links are solid capsules
DAMPING = 0.005  # N m s, at each hinge


class Loop(NamedTuple):
    """Geometry and masses of a loop, hinge by hinge.

    Attributes:
        lengths: length of link i, m.
        masses: mass of link i without its pin, kg.
        twists: angle from hinge i to hinge i + 1 about the link, rad; the last one closes.
        start: an assembled pose, rad.
    """

    lengths: tuple[float, ...]
    masses: tuple[float, ...]
    twists: tuple[float, ...]
    start: tuple[float, ...]


def _rad(*degrees: float) -> tuple[float, ...]:
    return tuple(float(np.deg2rad(angle)) for angle in degrees)


BENNETT = Loop(
    lengths=(0.15, 0.3, 0.15, 0.3),
    masses=(0.3, 0.5, 0.3, 0.5),
    twists=_rad(30, 90, 30, 90),
    start=_rad(90, 120, -90, -120),
)  # opposite links equal, a / sin(alpha) = b / sin(beta)
BRICARD = Loop(
    lengths=(0.15,) * 6,
    masses=(0.3,) * 6,
    twists=_rad(90, -90, 90, -90, 90, -90),
    start=_rad(90, 90, 90, 90, 90, 90),
)  # threefold symmetric, neighbouring hinges at right angles
START = BRICARD.start


def system(loop: Loop = BRICARD, gravity: float = GRAVITY) -> mb.System:
    """Return the loop as a `System` of as many coordinates as hinges, and six rows."""
    n = len(loop.lengths)
    q, v = coordinates(n)
    kinetic, potential = ca.SX(0), ca.SX(0)
    frames = chain(q, loop)
    for i, frame in enumerate(frames[:-1]):
        second_moment = _pin() + _link(loop.masses[i], loop.lengths[i])
        rate = ca.reshape(ca.jtimes(ca.vec(frame), q, v), 4, 4)
        kinetic += 0.5 * ca.trace(rate @ second_moment @ rate.T)
        potential += gravity * (frame @ second_moment)[2, 3]
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=potential,
        force=-DAMPING * v,
        B=ca.DM([1] + [0] * (n - 1)),
        phi=closure(frames[-1]),
        name="spatial_loop",
    )


def chain(q: ca.SX, loop: Loop) -> list[ca.SX]:
    """Return the (4, 4) transforms of the links' frames, and of the first one come round."""
    frame, frames = ca.SX.eye(4), []
    for i, (length, twist) in enumerate(zip(loop.lengths, loop.twists, strict=True)):
        frame = frame @ _turn(q[i], 2)
        frames.append(frame)
        frame = frame @ _shift(length) @ _turn(ca.SX(twist), 0)
    return [*frames, frame]


def closure(frame: ca.SX) -> ca.SX:
    """Return the (6, 1) rows that vanish where `frame` is the identity: place, m, and rotation."""
    skew = (frame[:3, :3] - frame[:3, :3].T) / 2
    return ca.vertcat(frame[:3, 3], skew[2, 1], skew[0, 2], skew[1, 0])


def to_mjcf(q: ca.SX, loop: Loop = BRICARD) -> ca.SX:
    """Return the joint angles of the file: zero at the authored pose."""
    return q - ca.DM(loop.start)


def _turn(angle: ca.SX, axis: int) -> ca.SX:
    one, two = (axis + 1) % 3, (axis + 2) % 3
    frame = ca.SX.eye(4)
    frame[one, one] = frame[two, two] = ca.cos(angle)
    frame[two, one], frame[one, two] = ca.sin(angle), -ca.sin(angle)
    return frame


def _shift(length: float) -> ca.DM:
    frame = ca.DM.eye(4)
    frame[0, 3] = length
    return frame


def _second_moment(mass: float, centre: tuple[float, float, float], inertia: np.ndarray) -> ca.DM:
    """Return `∫ x xᵀ dm` of homogeneous points x: principal `inertia` about `centre`."""
    point = np.array([*centre, 1.0])
    spread = np.zeros((4, 4))
    spread[:3, :3] = np.diag(inertia.sum() / 2 - inertia)
    return ca.DM(spread + mass * np.outer(point, point))


def _pin() -> ca.DM:
    across = PIN_MASS * (PIN_RADIUS**2 / 4 + PIN_LENGTH**2 / 12)
    along = PIN_MASS * PIN_RADIUS**2 / 2
    return _second_moment(PIN_MASS, (0.0, 0.0, 0.0), np.array([across, across, along]))


def _link(mass: float, length: float) -> ca.DM:
    across, along = capsule_inertia(mass, length, LINK_RADIUS)
    return _second_moment(mass, (length / 2, 0.0, 0.0), np.array([along, across, across]))
