"""Centre of mass of all that a free joint carries, from the rows of the inertia matrix.

With the mass m, the centre of mass c from the free body's origin in its axes, and the body's
rotation R, the rows of M that belong to the linear velocity of the free joint are

    M_linear = [ m 1   -m R c×   … ],

and `M_linear v` is the linear momentum of all that the joint carries, armature apart.
"""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Joint


def center_of_mass_arm(M_linear: ca.SX, R: ca.SX, joint: Joint, mass: float) -> ca.SX:
    """Return `-R c` (3, 1), m: from the centre of mass to the free body's origin, world axes.

    Args:
        M_linear: (3, nv) rows of M of the joint's linear velocity.
        R: (3, 3) rotation of the free body in the world.
        joint: the free joint.
        mass: of all that the joint carries, kg.
    """
    first = joint.dof + 3
    c_cross = -R.T @ M_linear[:, first : first + 3] / mass
    return -R @ ca.vertcat(c_cross[2, 1], c_cross[0, 2], c_cross[1, 0])


def center_of_mass_velocity(
    M_linear: ca.SX, v: ca.SX, joint: Joint, mass: float, armature: NDArray[np.float64]
) -> ca.SX:
    """Return `M_linear v / m` (3, 1), m/s, without the armature of the free joint.

    Args:
        M_linear: (3, nv) rows of M of the joint's linear velocity.
        v: (nv, 1) velocity.
        joint: the free joint.
        mass: of all that the joint carries, kg.
        armature: (nv,) diagonal that M holds besides the inertia of bodies.
    """
    linear = slice(joint.dof, joint.dof + 3)
    return (M_linear @ v - ca.DM(armature[linear]) * v[linear]) / mass
