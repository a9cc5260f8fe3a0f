"""Unit quaternions, w x y z, as tuples of scalars that may be numbers or SX.

Quaternions are assumed to be unit; only `normalise` makes them so. Rotations near zero are handled
without branches: series replace `sin(x)/x` and similar terms where these are 0/0, selected by
`if_else` on arguments that are safe on both sides, so values and derivatives stay finite.
"""

import casadi as ca

from mbcasadi.linalg.arithmetic import Scalar, minus, plus, times
from mbcasadi.spatial.vectors import Vec3, dot

Quat = tuple[Scalar, Scalar, Scalar, Scalar]
Mat3 = tuple[Vec3, Vec3, Vec3]

SERIES_BELOW = 1e-3
"""Squared angle (rad²) below which series replace closed forms: the first neglected term of
the series below is smaller than 1e-16 there."""


LEAST_MEASURED2 = 0.25
"""Squared length below which a quaternion that comes from outside is bad input; others are
normalised, as in MuJoCo."""

LEAST_LENGTH2 = 1e-30
"""Squared length below which a quaternion is a rotation of nothing, as in MuJoCo (mjMINVAL²)."""


def normalise(a: Quat) -> Quat:
    """Return `a / |a|`; a quaternion of length zero stays zero, and its rotation the identity."""
    w, x, y, z = a
    shrink = 1.0 / ca.sqrt(ca.fmax(w * w + x * x + y * y + z * z, LEAST_LENGTH2))
    return (w * shrink, x * shrink, y * shrink, z * shrink)


def multiply(a: Quat, b: Quat) -> Quat:
    """Return `a ∘ b`: first rotate by b, then by a (as rotation matrices, `R_a R_b`)."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        minus(minus(minus(times(aw, bw), times(ax, bx)), times(ay, by)), times(az, bz)),
        minus(plus(plus(times(aw, bx), times(ax, bw)), times(ay, bz)), times(az, by)),
        plus(plus(minus(times(aw, by), times(ax, bz)), times(ay, bw)), times(az, bx)),
        plus(minus(plus(times(aw, bz), times(ax, by)), times(ay, bx)), times(az, bw)),
    )


def conjugate(a: Quat) -> Quat:
    """Return the inverse of a unit quaternion."""
    return (a[0], -a[1], -a[2], -a[3])


def rotation(a: Quat) -> Mat3:
    """Return the rows of the rotation matrix `R` of a unit quaternion."""
    w, x, y, z = a
    x2, y2, z2 = plus(x, x), plus(y, y), plus(z, z)
    xx, yy, zz = times(x, x2), times(y, y2), times(z, z2)
    xy, xz, yz = times(x, y2), times(x, z2), times(y, z2)
    wx, wy, wz = times(w, x2), times(w, y2), times(w, z2)
    return (
        (minus(1.0, plus(yy, zz)), minus(xy, wz), plus(xz, wy)),
        (plus(xy, wz), minus(1.0, plus(xx, zz)), minus(yz, wx)),
        (minus(xz, wy), plus(yz, wx), minus(1.0, plus(xx, yy))),
    )


def rotate(R: Mat3, a: Vec3) -> Vec3:
    """Return `R a`."""
    return (dot(R[0], a), dot(R[1], a), dot(R[2], a))


def rotate_back(R: Mat3, a: Vec3) -> Vec3:
    """Return `Rᵀ a`."""
    return rotate(transpose(R), a)


def transpose(R: Mat3) -> Mat3:
    """Return `Rᵀ`."""
    return (
        (R[0][0], R[1][0], R[2][0]),
        (R[0][1], R[1][1], R[2][1]),
        (R[0][2], R[1][2], R[2][2]),
    )


def quaternion_of(R: Mat3) -> Quat:
    """Return a unit quaternion of the rotation matrix `R`.

    Each row of `4 q qᵀ`, linear in R, is a multiple of the quaternion; the one with the largest
    diagonal entry has at least the length two, so nothing vanishes at half a turn.
    """
    (a, b, c), (d, e, f), (g, h, i) = R
    trace = a + e + i
    rows: tuple[Quat, ...] = (
        (1.0 + trace, h - f, c - g, d - b),
        (h - f, 1.0 + 2.0 * a - trace, b + d, c + g),
        (c - g, b + d, 1.0 + 2.0 * e - trace, f + h),
        (d - b, c + g, f + h, 1.0 + 2.0 * i - trace),
    )
    largest, size = rows[0], rows[0][0]
    for k in (1, 2, 3):
        longer = rows[k][k] > size
        w, x, y, z = (ca.if_else(longer, rows[k][j], largest[j]) for j in range(4))
        largest, size = (w, x, y, z), ca.if_else(longer, rows[k][k], size)
    return normalise(largest)


def exponential(w: Vec3) -> Quat:
    """Return `(cos |w|/2, sin(|w|/2)/|w| w)`, the quaternion of the rotation vector `w`, rad."""
    square = dot(w, w)
    small = square < SERIES_BELOW
    angle = ca.sqrt(ca.if_else(small, 1.0, square))
    y = square / 4.0
    sinc_series = (1.0 - y / 6.0 * (1.0 - y / 20.0 * (1.0 - y / 42.0))) / 2.0
    cos_series = 1.0 - y / 2.0 * (1.0 - y / 12.0 * (1.0 - y / 30.0 * (1.0 - y / 56.0)))
    k = ca.if_else(small, sinc_series, ca.sin(angle / 2.0) / angle)
    c = ca.if_else(small, cos_series, ca.cos(angle / 2.0))
    return (c, k * w[0], k * w[1], k * w[2])


def logarithm(a: Quat) -> Vec3:
    """Return the rotation vector `w`, rad, `|w| ≤ π`, with `exponential(w) = ±a`.

    `w = 2 atan2(|x|, w₀)/|x| x`, the sign of the quaternion taken so that `w₀ ≥ 0`, the
    convention of MuJoCo's `mju_quat2Vel`.
    """
    sign = ca.if_else(a[0] < 0.0, -1.0, 1.0)
    w0, x = sign * a[0], (sign * a[1], sign * a[2], sign * a[3])
    square = dot(x, x)
    small = square < SERIES_BELOW
    sine = ca.sqrt(ca.if_else(small, 1.0, square))
    # 2 asin(s)/s, with s² = square: for a unit quaternion with w₀ > 0 this is the same angle.
    series = 2.0 * (
        1.0 + square * (1 / 6 + square * (3 / 40 + square * (15 / 336 + square * (105 / 3456))))
    )
    series = series + 2.0 * (945 / 42240) * square**5
    k = ca.if_else(small, series, 2.0 * ca.atan2(sine, w0) / sine)
    return (k * x[0], k * x[1], k * x[2])


def velocity_matrix(a: Quat) -> tuple[Vec3, Vec3, Vec3, Vec3]:
    """Return the rows of `G` (4×3) with `dquat/dt = G ω`, `ω` in the rotated frame, rad/s."""
    w, x, y, z = (0.5 * c for c in a)
    return ((-x, -y, -z), (w, -z, y), (z, w, -x), (-y, x, w))
