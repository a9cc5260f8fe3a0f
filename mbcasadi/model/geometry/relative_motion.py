"""How the material of two bodies moves against each other at a point.

With origin o_i, velocity v_i, angular velocity w_i of body i and a point P of the world,

    velocity of the material of i at P:  v_i + w_i × (P - o_i) = J_i(q, P) v,

and its rate of change at zero joint acceleration, where P itself moves with Ṗ,

    J̇_i v = a_i + dw_i × (P - o_i) + w_i × (Ṗ - v_i).

That is not the acceleration of one material point: where a body rolls, it differs from that by
`w × (Ṗ - velocity of the material)`. It is what `J v = 0` implies for all time.
"""

import casadi as ca
import numpy as np

from mbcasadi.description import Frame, RigidTree
from mbcasadi.model.chain import chain_of
from mbcasadi.model.configuration import tangent_rate
from mbcasadi.model.frames import frame_bias, frame_pose, frame_velocity, motion_axes
from mbcasadi.model.motion import link_poses
from mbcasadi.spatial import entries, stack


def relative_jacobian(tree: RigidTree, bodies: tuple[int, int], point: ca.SX, q: ca.SX) -> ca.SX:
    """Return J (3, nv): velocity of the second body's material at a point minus the first's.

    Joints that carry both bodies have structurally zero columns.

    Args:
        tree: the mechanism.
        bodies: their indices.
        point: (3, 1) in the world, m.
        q: (nq, 1) configuration.
    """
    chain = chain_of(tree)
    paths = [chain.path(chain.body_link[body]) for body in bodies]
    poses = link_poses(chain, q, {chain.body_link[body] for body in bodies})
    J = ca.SX(3, tree.nv)
    for sign, path, other in ((-1.0, paths[0], paths[1]), (1.0, paths[1], paths[0])):
        for link in (link for link in path if link not in other):
            for dof, linear, _ in motion_axes(chain, poses, link, entries(point)):
                J[:, dof] = sign * stack(linear)
    return J


def relative_bias(
    tree: RigidTree, bodies: tuple[int, int], point: ca.SX, state: tuple[ca.SX, ca.SX]
) -> ca.SX:
    """Return J̇ v (3, 1) of `relative_jacobian`, the motion of the point with q included.

    Args:
        tree: the mechanism.
        bodies: their indices.
        point: (3, 1) expression of q, m.
        state: q, v.
    """
    q, v = state
    rate = tangent_rate(tree, point, q, v)
    first, second = (_bias_at(tree, body, point, rate, state) for body in bodies)
    return second - first


def _bias_at(
    tree: RigidTree, body: int, point: ca.SX, rate: ca.SX, state: tuple[ca.SX, ca.SX]
) -> ca.SX:
    """Return `J̇_i v` of one body at a point that moves with the given rate."""
    if chain_of(tree).body_link[body] < 0:
        return ca.SX(3, 1)
    frame = Frame("", "body", body, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
    origin, _ = frame_pose(tree, frame, state[0])
    velocity, bias = (part(tree, frame, *state) for part in (frame_velocity, frame_bias))
    turning = ca.cross(bias[3:], point - origin) + ca.cross(velocity[3:], rate - velocity[:3])
    return bias[:3] + turning
