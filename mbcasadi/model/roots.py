"""Square roots with finite derivatives where they vanish."""

import casadi as ca

from mbcasadi.spatial import Scalar, Vec3, dot


def smooth_root(square: Scalar) -> ca.SX:
    """Return the square root, with a finite derivative (zero) at zero."""
    above = square > 0.0
    return ca.if_else(above, ca.sqrt(ca.if_else(above, square, 1.0)), 0.0)


def length_of(a: Vec3) -> ca.SX:
    """Return `|a|`, with the derivative zero at zero."""
    return smooth_root(dot(a, a))
