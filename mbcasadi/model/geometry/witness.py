"""A geom at its place, and what is known of two geoms that touch or nearly touch."""

from typing import NamedTuple

import casadi as ca

from mbcasadi.description import Geom

TINY = 1e-30
"""Square of a length, m², or of a sine, below which a direction is not defined; the square of the
length below which MuJoCo takes a default normal."""


class Placed(NamedTuple):
    """A geom with its pose.

    Attributes:
        geom: its numbers.
        p, R: (3, 1) origin, m, and (3, 3) rotation in the world.
    """

    geom: Geom
    p: ca.SX
    R: ca.SX


class Witness(NamedTuple):
    """The contact of two geoms.

    Attributes:
        gap: signed distance of the surfaces, m; negative where they overlap.
        point: (3, 1) the point half way between the two surfaces, world, m.
        normal: (3, 1) unit normal from the first geom to the second, world axes.
    """

    gap: ca.SX
    point: ca.SX
    normal: ca.SX


def safe_length(vector: ca.SX) -> ca.SX:
    """Return the length of a vector, one where it vanishes; its derivatives are finite there."""
    square = ca.sumsqr(vector)
    return ca.sqrt(ca.if_else(square > TINY, square, 1.0))
