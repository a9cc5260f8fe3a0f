"""The axes of a contact: its normal and two tangents, as an expression."""

import casadi as ca
import numpy as np


def axes_of_normal(normal: ca.SX) -> ca.SX:
    """Return (3, 3) rows n, t1, t2: a right-handed frame on a vector of any length but zero.

    `t1` is the world's x axis, projected onto the tangent plane; the y axis where the normal
    is within 45° of x, so that the tangents jump there.
    """
    n = normal / ca.norm_2(normal)
    is_along_x = ca.fabs(n[0]) > np.sqrt(0.5)
    along = ca.vertcat(ca.if_else(is_along_x, 0, 1), ca.if_else(is_along_x, 1, 0), 0)
    t1 = along - n * ca.dot(n, along)
    t1 = t1 / ca.norm_2(t1)
    return ca.horzcat(n, t1, ca.cross(n, t1)).T
