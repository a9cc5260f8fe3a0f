"""Unit quaternions as columns and as rotation matrices of expressions."""

import casadi as ca

from mbcasadi.spatial.quaternions import Quat, quaternion_of, rotation
from mbcasadi.spatial.vectors import vec3


def quat_of(column: ca.SX) -> Quat:
    """Return the entries w x y z of a column (4,)."""
    return (column[0], column[1], column[2], column[3])


def column_of(a: Quat) -> ca.SX:
    """Return a quaternion as a column (4,)."""
    return ca.vertcat(*a)


def matrix_of(a: Quat) -> ca.SX:
    """Return the rotation matrix (3, 3) of a quaternion."""
    return ca.vertcat(*(ca.horzcat(*row) for row in rotation(a)))


def quat_of_matrix(R: ca.SX) -> Quat:
    """Return a quaternion of a rotation matrix (3, 3)."""
    rows = [vec3(ca.vertsplit(R[k, :].T)) for k in range(3)]
    return quaternion_of((rows[0], rows[1], rows[2]))
