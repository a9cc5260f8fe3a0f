"""What stands still while a robot walks: points and soles of its feet, as its IMU sees them.

A foot that touches with a point, a ball or an edge has a landmark for each of its points; three
points or more that lie on no line make one landmark of position and rotation, of the foot's body.
A ball's landmark is its centre, which moves by `ω × r n` while the ball rolls on a plane of normal
n. A site in a ball of its body, or on its surface, stands for the ball.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.contacts.friction_cone import require_contacts, require_ground
from mbcasadi.contacts.groups import ContactGroup, contact_groups_of
from mbcasadi.description import Contact, Frame
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.noise import Imu
from mbcasadi.model import geometry
from mbcasadi.system import FrameFunctions, System
from mbcasadi.system.contact_frames import UNTURNED, point_on_body
from mbcasadi.system.tree_frames import point_on_root

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
        radius: by which it rolls, m; 0 for points and soles that are fixed to their body.
        normal: (3,) of the plane that they stand on.
        frame: of the foot's body at the contact, or at the mean of a sole's; of a ball that a site
            stands for at its centre.
        above: (3,) from the frame to the landmark, world axes, m.
        reach: from a sole's landmark to the farthest of its contacts, m.
    """

    name: str
    members: tuple[int, ...]
    sole: bool
    radius: float
    normal: Array
    frame: FrameFunctions
    above: Array
    reach: float = 0.0

    @property
    def size(self) -> int:
        """Rows of its measurement."""
        return 6 if self.sole else 3

    @property
    def rolls(self) -> bool:
        """Whether it moves where its body turns."""
        return self.radius > 0


class Sight(NamedTuple):
    """A landmark, or another frame, in the axes of the IMU.

    Attributes:
        place: (3,) from the IMU, m.
        rotation: (3, 3) of its body.
        J: (6, nv - 6) velocity above angular velocity by the rates of the joints.
    """

    place: ca.SX
    rotation: ca.SX
    J: ca.SX

    def velocity(self, rate: ca.SX, joint_rates: ca.SX) -> ca.SX:
        """Return (3,) beside the IMU, which turns at a rate (3,), in axes that do not."""
        return self.J[:3, :] @ joint_rates + ca.cross(rate, self.place)


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


def landmarks_of(
    system: System, contacts: Sequence[Contact], rolling: float
) -> list[tuple[Landmark, ...]]:
    """Return the landmarks of each foot, a body with contacts.

    Args:
        system, contacts: the robot and its contacts.
        rolling: radius by which balls roll, by their own.

    Raises:
        ProblemError: a contact with a body that moves, one that slides, or a body that rolls and is
            no ball.
    """
    require_contacts(contacts)
    require_ground(contacts)
    groups = contact_groups_of(system, contacts)
    return [_of_foot(system, group, contacts, rolling) for group in groups]


def _of_foot(
    system: System, group: ContactGroup, contacts: Sequence[Contact], rolling: float
) -> tuple[Landmark, ...]:
    own = [contacts[i] for i in group.members]
    normal = np.array(own[0].normal, dtype=float) / np.linalg.norm(own[0].normal)
    radius = _radius(group.frame, own[0].frame)
    spread = np.linalg.svd(group.arms, compute_uv=False)
    if len(own) > FLAT_RANK and spread[FLAT_RANK - 1] > SAME_LINE * spread[0]:
        above, reach = radius * normal, float(np.linalg.norm(group.arms, axis=1).max())
        names = own[0].frame, group.members
        return (Landmark(*names, True, 0.0, normal, group.frame, above, reach),)
    marks = []
    for i, contact in zip(group.members, own, strict=True):
        frame, above, size = system.frame(contact.frame, contact.kind), radius * normal, radius
        ball = None if radius else _ball(system, frame)
        if ball is not None:
            frame, size = ball
        marks.append(Landmark(contact.frame, (i,), False, rolling * size, normal, frame, above))
    return tuple(marks)


def _ball(system: System, frame: FrameFunctions) -> tuple[FrameFunctions, float] | None:
    """Return the frame at the centre of the ball that a point is in, and its radius, m."""
    tree, carrier = system.tree, frame.carrier
    if tree is None or carrier is None or carrier.body is None:
        return None
    balls = list[tuple[float, Array, float]]()
    for geom in tree.geoms:
        same = tree.bodies[geom.body].weld_root == carrier.body
        if same and geom.kind in ("sphere", "capsule") and (geom.contype or geom.conaffinity):
            for spot in geometry.spots(geom):
                at = Frame("", "body", geom.body, point_on_body(geom, spot), UNTURNED)
                centre = point_on_root(tree, carrier.body, at)
                away = float(np.linalg.norm(centre - carrier.point))
                balls.append((away / float(geom.size[0]), centre, float(geom.size[0])))
    inside = [ball for ball in balls if ball[0] <= ON_SURFACE]
    if not inside:
        return None
    _, centre, radius = min(inside, key=lambda ball: ball[0])
    return carrier.frame_at(centre), radius


ON_SURFACE = 1.001
"""Distance of a site from the centre of a ball, by its radius, at which it is on its surface."""

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


def sight(frame: FrameFunctions, above: Array | None, at: Mounting, q: ca.SX) -> Sight:
    """Return a point at joint coordinates.

    Args:
        frame: of its body.
        above: (3,) from the frame to the point, world axes, m; None for the frame's origin.
        at: the IMU at q.
        q: (nq,) with the base at the origin.
    """
    p, R = frame.pose(q)
    J = frame.jacobian(q)[:, FREE_V:]
    arm = ca.DM(3, 1) if above is None else ca.DM(above)
    p, J = p + arm, ca.vertcat(J[:3, :] - ca.skew(arm) @ J[3:, :], J[3:, :])
    turned = at.rotation.T
    relative = J - at.J
    shift = ca.skew(p - at.place) @ at.J[3:, :]  # seen from the IMU, which turns
    rates = ca.vertcat(turned @ (relative[:3, :] + shift), turned @ relative[3:, :])
    return Sight(turned @ (p - at.place), turned @ R, ca.sparsify(rates))


def limbs_of(jacobians: Sequence[ca.SX]) -> list[tuple[set[int], list[int]]]:
    """Return joints and members of each limb: what a common joint moves is of one limb.

    Args:
        jacobians: (k, n) of each member by the joints, with their structural zeros left out.
    """
    limbs: list[tuple[set[int], list[int]]] = []
    for i, J in enumerate(jacobians):
        joints = set(J.sparsity().get_triplet()[1])
        joined = [limb for limb in limbs if limb[0] & joints]
        limbs = [limb for limb in limbs if not limb[0] & joints]
        members = sorted([i, *(k for limb in joined for k in limb[1])])
        limbs.append((joints.union(*(limb[0] for limb in joined)), members))
    return limbs
