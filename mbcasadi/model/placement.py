"""Choice of link frames, after Denavit and Hartenberg, and their decomposition into steps.

The z axis of a hinge or slide is its axis. The x axis and, for a hinge, the origin on the axis
are free; they are laid along the common normal towards the next joint, so that the transform
to it is one shift along x, one turn about x, and a shift and a turn about the next axis.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Joint
from mbcasadi.spatial import Move, Step, Turn, vec3, vector_to_child

Array = NDArray[np.float64]

POSE_ROUNDING = 1e-13
"""Entries of rotations below this are rounding of exact zeros and ones; likewise positions, which
carry 1e-16 of lengths of order one in the units of the model."""

MIN_AXIS_SINE = 0.1
"""Sine of the angle between two axes above which their common normal is well conditioned."""


@dataclass(frozen=True)
class Pose:
    """Constant pose of one frame in another.

    Attributes:
        R: (3, 3) rotation.
        p: (3,) position, m.
    """

    R: Array
    p: Array

    @staticmethod
    def identity() -> "Pose":
        """Return the pose of a frame in itself."""
        return Pose(np.eye(3), np.zeros(3))

    def __matmul__(self, other: "Pose") -> "Pose":
        """Return the product of two poses."""
        return Pose(self.R @ other.R, self.R @ other.p + self.p)

    def inverse(self) -> "Pose":
        """Return the pose of the other frame in this one."""
        return Pose(self.R.T, -self.R.T @ self.p)

    def without_rounding(self) -> "Pose":
        """Return the pose with rounding errors of zeros and ones removed."""
        return Pose(_rotation_without_rounding(self.R), _position_without_rounding(self.p))


def _rotation_without_rounding(R: Array) -> Array:
    """Return a rotation with exact zeros and ones; one of expressions as it is."""
    if R.dtype == object:
        return R
    R = np.where(np.abs(R) < POSE_ROUNDING, 0.0, R)
    # Only where the other two are zero: an entry next to 1 has neighbours up to 1e-6.
    lone = np.count_nonzero(R, axis=1) == 1
    R[lone] = np.sign(R[lone])
    return R


def _position_without_rounding(p: Array) -> Array:
    """Return a position with exact zeros; one of expressions as it is."""
    return p if p.dtype == object else np.where(np.abs(p) < POSE_ROUNDING, 0.0, p)


def rotation_of(quat: Array) -> Array:
    """Return the (3, 3) rotation matrix of a quaternion w x y z, a unit one if of expressions."""
    w, x, y, z = quat if quat.dtype == object else quat / np.linalg.norm(quat)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def pose_of_quat(pos: Array, quat: Array) -> Pose:
    """Return the pose with this position and orientation."""
    return Pose(rotation_of(np.asarray(quat)), np.asarray(pos)).without_rounding()


def link_frame(
    joint: Joint, parent: Pose, child: tuple[Joint, Pose] | None, first_moment: Array
) -> Pose:
    """Return the frame of a link in its raw axes (the body axes after the joint).

    Args:
        joint: the joint that moves the link.
        parent: pose of the parent link's frame in the raw axes, at rest.
        child: the next joint and the pose of its raw axes in these, or None.
        first_moment: (3,) first mass moment in the raw axes.
    """
    if joint.kind == "free":
        return Pose.identity()
    anchor = np.asarray(joint.pos, float)
    if joint.kind == "ball":
        return Pose(np.eye(3), anchor)
    z = _unit(np.asarray(joint.axis, float))
    # Of all points on the axis the one next to the parent's origin needs no shift along z.
    near = anchor + z * (z @ (parent.p - anchor))
    x, origin = _towards_child(z, near, child)
    if x is None:
        x = _perpendicular(first_moment, z)
    if x is None:
        x = _any_perpendicular(z)
    return Pose(np.column_stack([x, np.cross(z, x), z]), origin).without_rounding()


def _towards_child(
    z: Array, near: Array, child: tuple[Joint, Pose] | None
) -> tuple[Array | None, Array]:
    """Return the x axis and the origin that suit the next joint."""
    if child is None:
        return None, near
    joint, pose = child
    point = pose.R @ np.asarray(joint.pos, float) + pose.p
    if joint.kind not in {"hinge", "slide"}:
        return _perpendicular(point - near, z), near
    axis = pose.R @ _unit(np.asarray(joint.axis, float))
    normal = np.cross(z, axis)
    sine = float(np.linalg.norm(normal))
    if sine < POSE_ROUNDING:
        return _perpendicular(point - near, z), near
    if sine < MIN_AXIS_SINE or joint.kind == "slide":
        return normal / sine, near
    # Foot of the common normal on this axis: (point - near) · (axis × (z × axis)) / sine².
    along = float((point - near) @ np.cross(axis, normal)) / sine**2
    return normal / sine, near + along * z


def _perpendicular(direction: Array, z: Array) -> Array | None:
    """Return the unit part of a vector across z, or None where it vanishes."""
    across = direction - z * (z @ direction)
    size = float(np.linalg.norm(across))
    return across / size if size > POSE_ROUNDING else None


def _any_perpendicular(z: Array) -> Array:
    """Return the unit vector across z that is nearest to a coordinate axis."""
    across = _perpendicular(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    assert across is not None
    return across


def _unit(a: Array) -> Array:
    # A component that is exactly ±1 must stay so.
    return a / np.linalg.norm(a)


def decompose(joint: Joint, pose: Pose) -> tuple[tuple[Step, ...], float, float]:
    """Split `R = Rz(a) Rx(b) Rz(c)`, `p = p1 + r z` into steps.

    Returns:
        Steps before the joint's motion, the constant to add to the joint coordinate, and the
        shift r along the axis after the motion.
    """
    if joint.kind == "free":
        return (), 0.0, 0.0  # its coordinates are its pose in the world
    if joint.kind == "ball":
        return (*_moves(pose.p), *_turns(pose.R, last=True)[0]), 0.0, 0.0
    turns, c = _turns(pose.R, last=joint.kind == "slide")
    if joint.kind == "slide":
        # Whatever lies along the axis adds to the coordinate.
        along = float(pose.R[:, 2] @ pose.p)
        rest = Pose(pose.R, pose.p - along * pose.R[:, 2]).without_rounding().p
        return (*_moves(rest), *turns), along - joint.ref, 0.0
    p1, r = _split_shift(pose)
    return (*_moves(p1), *turns), c - joint.ref, r


def _split_shift(pose: Pose) -> tuple[Array, float]:
    """Return p1 and r with `p = p1 + r z` and the fewest non-zero numbers."""
    z = pose.R[:, 2]
    candidates = [0.0, float(z @ pose.p)]
    candidates += [float(pose.p[k] / z[k]) for k in range(3) if abs(z[k]) > MIN_AXIS_SINE]

    def shift(r: float) -> Array:
        return Pose(pose.R, pose.p - r * z).without_rounding().p

    best = min(candidates, key=lambda r: np.count_nonzero(shift(r)) + (abs(r) > POSE_ROUNDING))
    return (shift(best), best) if abs(best) > POSE_ROUNDING else (pose.p, 0.0)


def _moves(p: Array) -> tuple[Step, ...]:
    return (Move(vec3(p)),) if np.any(p) else ()


def _turns(R: Array, *, last: bool) -> tuple[tuple[Step, ...], float]:
    """Return the constant turns of `R = Rz(a) Rx(b) Rz(c)`; Rz(c) as a step if `last`."""
    cos_b, sin_b = float(R[2, 2]), math.hypot(R[0, 2], R[1, 2])
    angle_a = (1.0, 0.0)
    if sin_b < POSE_ROUNDING:
        # Rz(a) Rx(0 or π) Rz(c): only one angle remains; it goes to c.
        cos_b, sin_b = math.copysign(1.0, cos_b), 0.0
    else:
        angle_a = (float(-R[1, 2]) / sin_b, float(R[0, 2]) / sin_b)
    steps = [
        Turn(2, *_clean_cos_sin(*angle_a)),
        Turn(0, *_clean_cos_sin(cos_b, sin_b)),
    ]
    # First column of the remainder, Rz(c): well defined however small the angle b is.
    x = vec3(R[:, 0])
    for step in steps:
        x = vector_to_child(step, x)
    angle_c = (float(x[0]), float(x[1]))
    if last:
        steps.append(Turn(2, *_clean_cos_sin(*angle_c)))
    angle = math.atan2(angle_c[1], angle_c[0])
    return tuple(s for s in steps if s.sin != 0.0 or s.cos != 1.0), angle


def _clean_cos_sin(c: float, s: float) -> tuple[float, float]:
    """Return cosine and sine with rounding errors of zeros and ones removed."""
    if abs(c) < POSE_ROUNDING:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < POSE_ROUNDING:
        return math.copysign(1.0, c), 0.0
    return c, s
