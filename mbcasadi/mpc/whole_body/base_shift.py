"""A base that is moved over feet which stay: how the joints of its pose follow.

With the rows `G v = 0` of contacts and loops, and the base moved by s without a turn,

    δ_j = -G_j⁺ G_b s,

the least motion of the joints that keeps the feet, to first order.
"""

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from mbcasadi.mpc.legged.from_system import trunk_joint
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.system import System, evaluate

RANK = 1e-6
"""Share of the largest singular value below which rows count as repeated."""


def joints_by_shift(system: System, q0: Array, ground: Array, yaw: float) -> Array:
    """Return (nv, 3) motion of the joints by a shift along, across and over the heading.

    Args:
        system: with its contacts as rows.
        q0: (nq,) pose in which it stands.
        ground: (3, 3) rotation from axes of the ground to the world's.
        yaw: heading of the base at q0 in axes of the ground, rad.
    """
    dof, q = trunk_joint(system).dof, ca.SX.sym("q", system.nq)
    at = {"q": q, "v": ca.SX(system.nv, 1), "t": ca.SX(0)}
    rows = ca.Function("rows", [q], [evaluate(system.loop_jacobian, at)])(q0).full()
    base, joints = slice(dof, dof + 3), np.delete(np.arange(system.nv), np.arange(dof, dof + 6))
    heading = ground @ Rotation.from_euler("z", yaw).as_matrix()
    follows = np.zeros((system.nv, 3))
    follows[joints] = -np.linalg.pinv(rows[:, joints], RANK) @ rows[:, base] @ heading
    return follows
