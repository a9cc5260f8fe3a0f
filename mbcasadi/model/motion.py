"""Steps of a link at a configuration, and poses of links in the world."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from mbcasadi.model.chain import Chain, Link
from mbcasadi.spatial import (
    ZERO3,
    Move,
    Quat,
    Rotate,
    Scalar,
    Step,
    Turn,
    Vec3,
    add,
    entries,
    normalise,
    rotation,
    scale,
    transpose,
    vector_to_parent,
    wrench_to_parent,
)

QUARTER_TOLERANCE = 1e-13
"""Angle (rad) within which an offset counts as a whole number of quarter turns."""


@dataclass(frozen=True)
class LinkPose:
    """Pose of a link in the world: the columns of R and the origin, m."""

    columns: tuple[Vec3, Vec3, Vec3]
    origin: Vec3


Wrench = tuple[Vec3, Vec3]

WORLD_POSE = LinkPose(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), ZERO3)


def quat_of(q: ca.SX, first: int) -> Quat:
    """Return four rows of q as a unit quaternion.

    MuJoCo normalises quaternions before it uses them, and so do all quantities here. The tangent
    derivative `∂/∂q N` stays exact at any length: N v is a motion that keeps the length.
    """
    return normalise(raw_quat(q, first))


def raw_quat(q: ca.SX, first: int) -> Quat:
    """Return four rows of q as they are."""
    return (q[first], q[first + 1], q[first + 2], q[first + 3])


def steps_of(link: Link, q: ca.SX) -> tuple[Step, ...]:
    """Return the steps from the parent's frame to the link's at configuration q."""
    first = link.joint.qpos
    match link.joint.kind:
        case "free":
            R = rotation(quat_of(q, first + 3))
            return (Move(entries(q, first)), Rotate(R))
        case "ball":
            return (*link.before, Rotate(rotation(quat_of(q, first))))
        case "slide":
            return (*link.before, Move((0.0, 0.0, q[first] + link.offset)))
    turn = Turn(2, *cos_sin(q[first], link.offset))
    shift = (Move((0.0, 0.0, link.after)),) if link.after else ()
    return (*link.before, turn, *shift)


def cos_sin(angle: ca.SX, offset: float) -> tuple[ca.SX, ca.SX]:
    """Return cosine and sine of `angle + offset`; quarter turns cost nothing."""
    quarters = round(offset / (math.pi / 2))
    if abs(offset - quarters * math.pi / 2) > QUARTER_TOLERANCE:
        return ca.cos(angle + offset), ca.sin(angle + offset)
    c, s = ca.cos(angle), ca.sin(angle)
    return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters % 4]


def link_poses(chain: Chain, q: ca.SX, links: set[int] | None = None) -> dict[int, LinkPose]:
    """Return the world poses of the given links (all if None) and of their ancestors.

    The key `WORLD` holds the pose of the world itself.
    """
    selected = set(range(len(chain.links))) if links is None else links
    poses = {-1: WORLD_POSE}
    for i in sorted({k for link in selected for k in chain.path(link)}):
        pose = poses[chain.links[i].parent]
        for step in steps_of(chain.links[i], q):
            pose = pose_after(pose, step)
        poses[i] = pose
    return poses


def pose_after(pose: LinkPose, step: Step) -> LinkPose:
    """Return the pose after one more step."""
    x, y, z = pose.columns
    if isinstance(step, Move):
        return LinkPose(pose.columns, add(pose.origin, from_columns(pose.columns, step.by)))
    if isinstance(step, Turn):
        columns = [x, y, z]
        i, j = (step.axis + 1) % 3, (step.axis + 2) % 3
        a, b = columns[i], columns[j]
        columns[i] = add(scale(step.cos, a), scale(step.sin, b))
        columns[j] = add(scale(-step.sin, a), scale(step.cos, b))
        return LinkPose((columns[0], columns[1], columns[2]), pose.origin)
    x, y, z = (from_columns(pose.columns, column) for column in transpose(step.R))
    return LinkPose((x, y, z), pose.origin)


def from_columns(columns: tuple[Vec3, Vec3, Vec3], a: Vec3) -> Vec3:
    """Return `R a` from the columns of R."""
    x, y, z = (scale(factor, column) for factor, column in zip(a, columns, strict=True))
    return add(add(x, y), z)


def wrench_before(steps: Sequence[Step], wrench: Wrench) -> Wrench:
    """Return a wrench in the frame that the steps start from."""
    for step in reversed(steps):
        wrench = wrench_to_parent(step, *wrench)
    return wrench


def wrench_on_dofs(link: Link, wrench: Wrench, steps: tuple[Step, ...]) -> list[tuple[int, Scalar]]:
    """Return the generalised force of a wrench on each dof of the link.

    Args:
        link: the link.
        wrench: force, N, and moment about the link's origin, N m, in its axes.
        steps: the link's steps at the configuration.
    """
    force, moment = wrench
    dof = link.joint.dof
    match link.joint.kind:
        case "hinge":
            return [(dof, moment[2])]
        case "slide":
            return [(dof, force[2])]
        case "ball":
            return [(dof + k, moment[k]) for k in range(3)]
    # A free joint's linear velocity is in world axes, its angular velocity in its own.
    world_force = vector_to_parent(steps[-1], force)
    rows = [(dof + k, world_force[k]) for k in range(3)]
    return rows + [(dof + 3 + k, moment[k]) for k in range(3)]
