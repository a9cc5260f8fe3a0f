"""A base that is moved and turned over feet which stay: how the joints of its pose follow.

With the rows `G v = 0` of contacts and loops, and the base moved and turned by s,

    δ_j = -G_j⁺ G_b s,

the least motion of the joints that keeps the feet, to first order.
"""

import casadi as ca
import numpy as np
import scipy

from mbcasadi.mpc.legged.from_system import trunk_joint
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.system import System, evaluate

RANK = 1e-6
"""Share of the largest singular value below which rows count as repeated."""


def motion_by_shift(system: System, q0: Array, ground: Array, yaw: float) -> Array:
    """Return (nv, 6) motion by a shift along, across and over the heading, and turns about these.

    Args:
        system: with its contacts as rows.
        q0: (nq,) pose in which it stands.
        ground: (3, 3) rotation from axes of the ground to the world's.
        yaw: heading of the base at q0 in axes of the ground, rad.
    """
    from scipy.spatial.transform import Rotation

    joint, q = trunk_joint(system), ca.SX.sym("q", system.nq)
    at = {"q": q, "v": ca.SX(system.nv, 1), "t": ca.SX(0)}
    rows = ca.Function("rows", [q], [evaluate(system.loop_jacobian, at)])(q0).full()
    base = np.arange(joint.dof, joint.dof + 6)
    joints = np.delete(np.arange(system.nv), base)
    heading = ground @ Rotation.from_euler("z", yaw).as_matrix()
    turn = Rotation.from_quat(q0[joint.qpos + 3 : joint.qpos + 7], scalar_first=True)
    follows = np.zeros((system.nv, 6))
    follows[base] = scipy.linalg.block_diag(heading, turn.inv().as_matrix() @ heading)
    follows[joints] = -np.linalg.pinv(rows[:, joints], RANK) @ rows[:, base] @ follows[base]
    return follows
