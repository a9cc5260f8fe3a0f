"""Products of rotations, and the least one between two directions."""

import casadi as ca

from mbcasadi.spatial.quaternions import Quat, multiply, normalise


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
