"""What stands still while a robot walks: points and soles of its feet, as its IMU sees them.

A foot that touches with a point, a ball or an edge has a landmark for each of its points; three
points or more that lie on no line make one landmark of position and rotation, of the foot's body.
A ball's landmark is its centre, which moves by `ω × r n` while the ball rolls on a plane of normal
n.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.contacts.groups import ContactGroup, contact_groups_of
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.noise import Imu
from mbcasadi.system import FrameFunctions, System

Array = NDArray[np.float64]

FLAT_RANK = 2
"""Independent directions among the arms of a sole."""

FREE_Q, FREE_V = 7, 6
"""Coordinates and rates of a free base, the first ones of q and v."""


@dataclass(frozen=True)
class Landmark:
    """A point, or the frame of a sole.

    Attributes:
        name: of its first contact.
        members: indices of its contacts.
        sole: whether its rotation counts.
        radius: of its balls, m, whose centres are taken; 0 for points that are fixed to the body.
        normal: (3,) of the plane that they stand on.
    """

    name: str
    members: tuple[int, ...]
    sole: bool
    radius: float
    normal: Array

    @property
    def size(self) -> int:
        """Rows of its measurement."""
        return 6 if self.sole else 3

    @property
    def rolls(self) -> bool:
        """Whether it moves where the body turns: a sole on several balls does not."""
        return self.radius > 0 and not self.sole


class Sight(NamedTuple):
    """A landmark in the axes of the IMU.

    Attributes:
        place: (3,) from the IMU, m.
        rotation: (3, 3) of the foot's body.
        J: (6, nv - 6) velocity above angular velocity by the rates of the joints.
    """

    place: ca.SX
    rotation: ca.SX
    J: ca.SX


class Mounting(NamedTuple):
    """The IMU in the axes of the base.

    Attributes:
        place: (3,), m.
        rotation: (3, 3).
        J: (6, nv - 6) velocity above angular velocity by the rates of the joints.
    """

    place: ca.SX
    rotation: ca.SX
    J: ca.SX


def require_free_base(system: System) -> None:
    """Raise `ProblemError` unless the first joint is the only free one, and the root's."""
    joints = () if system.tree is None else system.tree.joints
    free = [joint.name for joint in joints if joint.kind == "free"]
    if len(free) != 1 or joints[0].kind != "free":
        raise ProblemError(
            f"'{system.name}' has {len(free)} free joints{', not the first' * bool(free)}; "
            "expected one robot with a free base as the first joint of the model"
        )


def landmarks_of(system: System, contacts: Sequence[Contact]) -> list[tuple[Landmark, ...]]:
    """Return the landmarks of each foot, a body with contacts.

    Raises:
        ProblemError: a contact with a body that moves, one that slides, or a body that rolls and is
            no ball.
    """
    for contact in contacts:
        if contact.other or contact.slides:
            kind = f"touches '{contact.other}'" if contact.other else "slides"
            raise ProblemError(
                f"contact '{contact.frame}' {kind}; expected contacts that stand on the world"
            )
    return [_of_foot(group, contacts) for group in contact_groups_of(system, contacts)]


def _of_foot(group: ContactGroup, contacts: Sequence[Contact]) -> tuple[Landmark, ...]:
    names = [contacts[i].frame for i in group.members]
    normal = np.array(contacts[group.members[0]].normal, dtype=float)
    radius = _radius(group.frame, names[0])
    spread = np.linalg.svd(group.arms, compute_uv=False)
    if len(names) > FLAT_RANK and spread[FLAT_RANK - 1] > SAME_LINE * spread[0]:
        return (Landmark(names[0], group.members, True, radius, normal),)
    members = zip(names, group.members, strict=True)
    return tuple(Landmark(name, (i,), False, radius, normal) for name, i in members)


SAME_LINE = 1e-6
"""Points that spread less than this across a line, by their spread along it, are on it."""


def _radius(frame: FrameFunctions, name: str) -> float:
    """Return the radius of the ball that carries a contact, 0 for a point that is fixed."""
    rolling = () if frame.carrier is None else frame.carrier.rolling
    if not rolling:
        return 0.0
    if rolling[0] != "round":
        raise ProblemError(
            f"contact '{name}' moves over the surface of '{rolling[0]}', which rolls and is no "
            "ball; expected a ball or a capsule, points of a box or mesh, or sites"
        )
    return float(str(rolling[1]))


def mounting(system: System, imu: Imu, q: ca.SX) -> Mounting:
    """Return the IMU at joint coordinates, base at the origin.

    Args:
        system: the robot.
        imu: on one of its bodies.
        q: (nq,) with the base at the origin.
    """
    frame = system.frame(imu.frame, imu.kind)
    p, R = frame.pose(q)
    return Mounting(p, R, frame.jacobian(q)[:, FREE_V:])


def sight(
    system: System, contacts: Sequence[Contact], landmark: Landmark, at: Mounting, q: ca.SX
) -> Sight:
    """Return a landmark at joint coordinates.

    Args:
        system, contacts: the robot and its contacts.
        landmark: one of them.
        at: the IMU at q.
        q: (nq,) with the base at the origin.
    """
    frame = contact_groups_of(system, [contacts[i] for i in landmark.members])[0].frame
    p, R = frame.pose(q)
    J = frame.jacobian(q)[:, FREE_V:]
    above = ca.DM(landmark.radius * landmark.normal)  # from the point that touches to the centre
    p, J = p + above, ca.vertcat(J[:3, :] - ca.skew(above) @ J[3:, :], J[3:, :])
    turned = at.rotation.T
    relative = J - at.J
    shift = ca.skew(p - at.place) @ at.J[3:, :]  # seen from the IMU, which turns
    rates = ca.vertcat(turned @ (relative[:3, :] + shift), turned @ relative[3:, :])
    return Sight(turned @ (p - at.place), turned @ R, ca.sparsify(rates))

