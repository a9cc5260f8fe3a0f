"""Relative motion of two points on a tree: positions, Jacobian rows and bias accelerations."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Connect, RigidTree, Weld
from mbcasadi.description.tree import DOF_SIZE
from mbcasadi.model.chain import Chain, chain_of
from mbcasadi.model.frames import motion_axes
from mbcasadi.model.motion import LinkPose, from_columns, link_poses
from mbcasadi.model.recursion import LinkMotion, link_motions
from mbcasadi.spatial import ZERO3, Vec3, add, scale, stack, subtract, vec3


@dataclass(frozen=True)
class Pair:
    """Two anchors in the world.

    Attributes:
        chain: the links of the tree.
        links: the links that carry the anchors.
        local: the anchors in the links' frames, m.
        points: the anchors in the world, m.
        poses: poses of the links involved.
    """

    chain: Chain
    links: tuple[int, int]
    local: tuple[Vec3, Vec3]
    points: tuple[Vec3, Vec3]
    poses: dict[int, LinkPose]


def pair_of(tree: RigidTree, equality: Connect | Weld, q: ca.SX) -> Pair:
    """Return the anchors of a constraint at configuration q."""
    chain = chain_of(tree)
    links = (chain.body_link[equality.body1], chain.body_link[equality.body2])
    local = (
        vec3(anchor_on_link(chain, equality.body1, equality.anchor1)),
        vec3(anchor_on_link(chain, equality.body2, equality.anchor2)),
    )
    poses = link_poses(chain, q, set(links))
    points = (
        add(poses[links[0]].origin, from_columns(poses[links[0]].columns, local[0])),
        add(poses[links[1]].origin, from_columns(poses[links[1]].columns, local[1])),
    )
    return Pair(chain, links, local, points, poses)


def gap(pair: Pair) -> Vec3:
    """Return `p1 - p2`, m, world axes."""
    return subtract(*pair.points)


def gap_jacobian(pair: Pair, *, relative: bool) -> tuple[ca.SX, ca.SX]:
    """Return the (3, nv) Jacobians of `v1 - v2` and `ω1 - ω2`, world axes.

    A joint that carries both anchors turns their gap and leaves their relative rotation alone.
    With `relative`, that turn is omitted.
    """
    chain, poses = pair.chain, pair.poses
    path1, path2 = (chain.path(link) for link in pair.links)
    linear, angular = ca.SX(3, chain.tree.nv), ca.SX(3, chain.tree.nv)
    moving = set(path1) ^ set(path2) if relative else {*path1, *path2}
    for link in moving:
        if link in path1 and link in path2:
            # axis × (p1 - o) - axis × (p2 - o) = axis × (p1 - p2)
            point, sign = add(poses[link].origin, gap(pair)), 1.0
        else:
            point, sign = (pair.points[0], 1.0) if link in path1 else (pair.points[1], -1.0)
        shared = link in path1 and link in path2
        for dof, of_point, of_link in motion_axes(chain, poses, link, point):
            if shared and of_link is ZERO3:
                continue  # a translation of both leaves the gap as it is
            linear[:, dof] = stack(scale(sign, of_point))
            if not shared:
                angular[:, dof] = stack(scale(sign, of_link))
    return linear, angular


def relative_velocity(pair: Pair, v: ca.SX) -> ca.SX:
    """Return v (nv, 1) with the joints that carry both anchors at rest."""
    path1, path2 = (set(pair.chain.path(link)) for link in pair.links)
    at_rest = ca.SX(v)
    for link in path1 & path2:
        joint = pair.chain.links[link].joint
        at_rest[joint.dof : joint.dof + DOF_SIZE[joint.kind]] = 0
    return at_rest


def gap_bias(pair: Pair, q: ca.SX, v: ca.SX) -> tuple[Vec3, Vec3, Vec3, Vec3]:
    """Return the terms of `J̇ v`, world axes, at zero joint acceleration.

    Returns:
        `a1 - a2` of the anchors, `α1 - α2`, `ω1 - ω2` and `ω2` of the links.
    """
    motions = link_motions(pair.chain, q, v, links=set(pair.links))
    (a1, dw1, w1), (a2, dw2, w2) = (
        _in_world(motions[link], pair.poses[link], point)
        for link, point in zip(pair.links, pair.local, strict=True)
    )
    return subtract(a1, a2), subtract(dw1, dw2), subtract(w1, w2), w2


def _in_world(motion: LinkMotion, pose: LinkPose, point: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    """Return acceleration minus gravity of a point, and dω and ω of its link, world axes."""
    in_link = (motion.acceleration_at(point), motion.dw, motion.w)
    a, dw, w = (from_columns(pose.columns, x) for x in in_link)
    return a, dw, w


def anchor_on_link(chain: Chain, body: int, point: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a point of a body in the frame of the link that carries the body, m."""
    pose = chain.body_pose[body]
    return np.asarray(pose.R @ point + pose.p)
