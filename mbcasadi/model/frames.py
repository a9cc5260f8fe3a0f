"""Pose, Jacobian, velocity and bias acceleration of frames."""

import casadi as ca

from mbcasadi.description import Frame, RigidTree
from mbcasadi.model.chain import WORLD, Chain, chain_of
from mbcasadi.model.motion import WORLD_POSE, LinkPose, combine, link_poses
from mbcasadi.model.placement import Pose, pose_of_quat
from mbcasadi.model.recursion import link_motions
from mbcasadi.spatial import ZERO3, Vec3, add, cross, stack, subtract, vec3


def frame_pose(tree: RigidTree, frame: Frame, q: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return position p_WB (3, 1), m, and rotation R_WB (3, 3) of a frame."""
    chain = chain_of(tree)
    link, mounted = mounting(chain, frame)
    pose = link_poses(chain, q, {link})[link]
    columns = [combine(pose.columns, vec3(mounted.R[:, k])) for k in range(3)]
    R = ca.horzcat(*[stack(column) for column in columns])
    return stack(point_of(pose, mounted)), R


def frame_jacobian(tree: RigidTree, frame: Frame, q: ca.SX) -> ca.SX:
    """Return J (6, nv): linear velocity of the frame's origin above angular, world axes.

    Columns of joints that do not carry the frame are structurally zero.
    """
    chain = chain_of(tree)
    link, mounted = mounting(chain, frame)
    poses = link_poses(chain, q, {link})
    return point_jacobian(chain, poses, link, point_of(poses[link], mounted))


def frame_velocity(tree: RigidTree, frame: Frame, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `J v` (6, 1): linear velocity, m/s, above angular, rad/s, world axes."""
    return frame_jacobian(tree, frame, q) @ v


def frame_bias(tree: RigidTree, frame: Frame, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `J̇ v` (6, 1): the frame's acceleration at zero joint acceleration, world axes."""
    chain = chain_of(tree)
    link, mounted = mounting(chain, frame)
    if link == WORLD:
        return ca.SX(6, 1)
    motion = link_motions(chain, q, v, links={link})[link]
    columns = link_poses(chain, q, {link})[link].columns
    felt = combine(columns, motion.at(vec3(mounted.p)))
    return stack(add(felt, vec3(tree.gravity)), combine(columns, motion.dw))


def mounting(chain: Chain, frame: Frame) -> tuple[int, Pose]:
    """Return the link that carries a frame and the frame's constant pose on it."""
    pose = chain.body_pose[frame.body] @ pose_of_quat(frame.pos, frame.quat)
    return chain.body_link[frame.body], pose.snapped()


def point_of(pose: LinkPose, mounted: Pose) -> Vec3:
    """Return the world position of a frame's origin, m."""
    return add(pose.origin, combine(pose.columns, vec3(mounted.p)))


def point_jacobian(chain: Chain, poses: dict[int, LinkPose], link: int, point: Vec3) -> ca.SX:
    """Return J (6, nv) of a point of a link, world axes, from the poses of its ancestors."""
    J = ca.SX(6, chain.tree.nv)
    for i in chain.path(link):
        for dof, linear, angular in motion_axes(chain, poses, i, point):
            J[:, dof] = stack(linear, angular)
    return J


def motion_axes(
    chain: Chain, poses: dict[int, LinkPose], link: int, point: Vec3
) -> list[tuple[int, Vec3, Vec3]]:
    """Return each dof of a link with the velocities that it gives to a point of its subtree.

    Returns:
        (dof, linear velocity, angular velocity) at unit speed, world axes.
    """
    joint, pose = chain.links[link].joint, poses[link]
    if joint.kind == "slide":
        return [(joint.dof, pose.columns[2], ZERO3)]
    arm = subtract(point, pose.origin)
    if joint.kind == "hinge":
        return [(joint.dof, cross(pose.columns[2], arm), pose.columns[2])]
    found: list[tuple[int, Vec3, Vec3]] = []
    first = joint.dof
    if joint.kind == "free":
        found = [(first + k, axis, ZERO3) for k, axis in enumerate(WORLD_POSE.columns)]
        first += 3
    return found + [(first + k, cross(axis, arm), axis) for k, axis in enumerate(pose.columns)]
