"""Rotations of the invariant filter: exponential, its Jacobians, and integrals over a tick.

    Γ_m(φ) = Σ_k [φ]×^k / (k + m)!      Γ_0 = Exp,  Γ_1 = J_l,  Γ_2      [Bloesch et al. 2013]

so that a constant rate ω and specific force a in body axes give over dt, with φ = ω dt,

    R ← R Γ_0,   v ← v + R Γ_1 a dt + g dt,   p ← p + v dt + R Γ_2 a dt² + ½ g dt².
"""

import casadi as ca

from mbcasadi.spatial.integrals import Integrals as Integrals
from mbcasadi.spatial.integrals import integrals as integrals
from mbcasadi.spatial.quaternions import (
    Quat,
    multiply,
    normalise,
    quaternion_of,
    rotation,
)
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


def product(a: Quat, b: Quat) -> Quat:
    """Return the unit quaternion of `R_a R_b`."""
    return normalise(multiply(a, b))


def turn_between(a: ca.SX, b: ca.SX) -> Quat:
    """Return the least rotation that turns a direction a (3,) into b (3,), both unit.

    Opposite directions are turned about an axis across them.
    """
    w = 1 + ca.dot(a, b)
    across = ca.if_else(ca.fabs(a[0]) < 0.9, ca.vertcat(0, -a[2], a[1]), ca.vertcat(a[2], 0, -a[0]))
    opposite = w < OPPOSITE
    axis = ca.if_else(opposite, across, ca.cross(a, b))
    return normalise((ca.if_else(opposite, 0.0, w), axis[0], axis[1], axis[2]))


OPPOSITE = 1e-6
"""`1 + cos` below which two directions are opposite."""
