"""Rotations of the invariant filter: exponential, its Jacobians, and integrals over a tick.

    Γ_m(φ) = Σ_k [φ]×^k / (k + m)!      Γ_0 = Exp,  Γ_1 = J_l,  Γ_2      [Bloesch et al. 2013]

so that a constant rate ω and specific force a in body axes give over dt, with φ = ω dt,

    R ← R Γ_0,   v ← v + R Γ_1 a dt + g dt,   p ← p + v dt + R Γ_2 a dt² + ½ g dt².
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.spatial.quaternions import (
    SERIES_BELOW,
    Quat,
    multiply,
    normalise,
    quaternion_of,
    rotation,
)
from mbcasadi.spatial.vectors import vec3


class Integrals(NamedTuple):
    """Γ_1 and Γ_2 (3, 3) of a rotation vector."""

    first: ca.SX
    second: ca.SX


def integrals(phi: ca.SX) -> Integrals:
    """Return Γ_1 and Γ_2 of a rotation vector (3,), rad; series where the angle is small."""
    square = ca.sumsqr(phi)
    small = square < SERIES_BELOW
    s = ca.if_else(small, 1.0, square)
    angle = ca.sqrt(s)
    cos, sin = ca.cos(angle), ca.sin(angle)

    def chosen(closed: ca.SX, *terms: float) -> ca.SX:
        series = ca.SX(0)
        for term in reversed(terms):
            series = term + square * series
        return ca.if_else(small, series, closed)

    half = chosen((1 - cos) / s, 1 / 2, -1 / 24, 1 / 720, -1 / 40320)
    sixth = chosen((angle - sin) / (s * angle), 1 / 6, -1 / 120, 1 / 5040, -1 / 362880)
    fourth = chosen((s / 2 - 1 + cos) / (s * s), 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800)
    K = ca.skew(phi)
    K2 = phi @ phi.T - square * ca.SX.eye(3)
    return Integrals(
        ca.SX.eye(3) + half * K + sixth * K2, ca.SX.eye(3) / 2 + sixth * K + fourth * K2
    )


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
