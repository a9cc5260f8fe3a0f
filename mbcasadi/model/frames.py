"""Pose, Jacobian, velocity and bias acceleration of frames."""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.description import Frame, RigidTree
from mbcasadi.model.chain import WORLD, Chain, chain_of
from mbcasadi.model.motion import WORLD_POSE, LinkPose, from_columns, link_poses
from mbcasadi.model.placement import Pose, pose_of_quat
from mbcasadi.model.recursion import link_motions
from mbcasadi.spatial import ZERO3, Vec3, add, cross, stack, subtract, vec3


def frame_pose(tree: RigidTree, frame: Frame, q: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return position p_WB (3, 1), m, and rotation R_WB (3, 3) of a frame."""
    return frame_poses(tree, [frame], q)[0]


def frame_poses(tree: RigidTree, frames: Sequence[Frame], q: ca.SX) -> list[tuple[ca.SX, ca.SX]]:
    """Return the same of several frames."""
    chain = chain_of(tree)
    places = [frame_on_link(chain, frame) for frame in frames]
    poses = link_poses(chain, q, {link for link, _ in places})
    return [_mounted_pose(poses[link], mounted) for link, mounted in places]


def _mounted_pose(pose: LinkPose, mounted: Pose) -> tuple[ca.SX, ca.SX]:
    """Return position and rotation of a frame on a link."""
    columns = [from_columns(pose.columns, vec3(mounted.R[:, k])) for k in range(3)]
    R = ca.horzcat(*[stack(column) for column in columns])
    return stack(frame_origin(pose, mounted)), R


def frame_jacobian(tree: RigidTree, frame: Frame, q: ca.SX) -> ca.SX:
    """Return J (6, nv): linear velocity of the frame's origin above angular, world axes.

    Columns of joints that do not carry the frame are structurally zero.
    """
    chain = chain_of(tree)
    link, mounted = frame_on_link(chain, frame)
    poses = link_poses(chain, q, {link})
    return point_jacobian(chain, poses, link, frame_origin(poses[link], mounted))


def frame_velocity(tree: RigidTree, frame: Frame, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `J v` (6, 1): linear velocity, m/s, above angular, rad/s, world axes.

    Args:
        tree: the mechanism.
        frame: a frame of the tree.
        q, v: (nq, 1), (nv, 1) state.
    """
    return frame_jacobian(tree, frame, q) @ v


def frame_bias(tree: RigidTree, frame: Frame, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `J̇ v` (6, 1): the frame's acceleration at zero joint acceleration, world axes.

    Args:
        tree: the mechanism.
        frame: a frame of the tree.
        q, v: (nq, 1), (nv, 1) state.
    """
    chain = chain_of(tree)
    link, mounted = frame_on_link(chain, frame)
    if link == WORLD:
        return ca.SX(6, 1)
    motion = link_motions(chain, q, v, links={link})[link]
    columns = link_poses(chain, q, {link})[link].columns
    relative_to_gravity = from_columns(columns, motion.acceleration_at(vec3(mounted.p)))
    return stack(add(relative_to_gravity, vec3(tree.gravity)), from_columns(columns, motion.dw))


def frame_on_link(chain: Chain, frame: Frame) -> tuple[int, Pose]:
    """Return the link that carries a frame and the frame's constant pose on it."""
    pose = chain.body_pose[frame.body] @ pose_of_quat(frame.pos, frame.quat)
    return chain.body_link[frame.body], pose.without_rounding()


def frame_origin(pose: LinkPose, mounted: Pose) -> Vec3:
    """Return the world position of a frame's origin, m."""
    return add(pose.origin, from_columns(pose.columns, vec3(mounted.p)))


def point_jacobian(chain: Chain, poses: dict[int, LinkPose], link: int, point: Vec3) -> ca.SX:
    """Return J (6, nv) of a point of a link, world axes.

    Args:
        chain: the links.
        poses: of the link and of its ancestors.
        link: index of the link.
        point: the point in the world, m.
    """
    J = ca.SX(6, chain.tree.nv)
    for i in chain.path(link):
        for dof, linear, angular in motion_axes(chain, poses, i, point):
            J[:, dof] = stack(linear, angular)
    return J


def motion_axes(
    chain: Chain, poses: dict[int, LinkPose], link: int, point: Vec3
) -> list[tuple[int, Vec3, Vec3]]:
    """Return each dof of a link with the velocities that it gives to a point of its subtree.

    Args:
        chain: the links.
        poses: of the link and of its ancestors.
        link: index of the link.
        point: the point in the world, m.

    Returns:
        (dof, linear velocity, angular velocity) at unit speed, world axes.
    """
    joint, pose = chain.links[link].joint, poses[link]
    if joint.kind == "slide":
        return [(joint.dof, pose.columns[2], ZERO3)]
    arm = subtract(point, pose.origin)
    if joint.kind == "hinge":
        return [(joint.dof, cross(pose.columns[2], arm), pose.columns[2])]
    translations: list[tuple[int, Vec3, Vec3]] = []
    first = joint.dof
    if joint.kind == "free":
        translations = [(first + k, axis, ZERO3) for k, axis in enumerate(WORLD_POSE.columns)]
        first += 3
    rotations = [(first + k, cross(axis, arm), axis) for k, axis in enumerate(pose.columns)]
    return translations + rotations
