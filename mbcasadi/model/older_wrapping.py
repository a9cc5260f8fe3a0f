"""A string around or through a disc with a side, as older versions of MuJoCo decide it.

Outside, before 4.0: of the two ways around the disc it takes the one whose points of contact are
nearer to the side, but none on which its straight pieces cross each other. It wraps where the
straight line hits the disc, or passes it on the side opposite to the side site. Inside, before
3.16: Newton's method is on `z = sin p` from next to 1, and where it gives up the point of contact
is in the middle of the ends (`mju_wrap`; measured with 3.10 to 3.17).
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.model.planar_wrapping import (
    NEWTON_TOLERANCE,
    SMALLEST,
    Contact2,
    Vec2,
    cross2,
    dot2,
    minus,
    nearest_to_centre,
    select2,
    tangent,
    unit2,
)
from mbcasadi.spatial import Scalar

FIRST_SINE = 1.0 - 1e-7
"""Sine of p at which Newton's method starts."""

MOST_STEPS = 20
"""Steps after which it gives up."""


class Way(NamedTuple):
    """One way around the disc: its points of contact, arc, and how near it is to the side."""

    first: Vec2
    last: Vec2
    arc: ca.SX
    nearness: ca.SX
    crosses: ca.SX


def around_on_nearest_side(end0: Vec2, end1: Vec2, side: Vec2, radius: Scalar) -> Contact2:
    """Return how a string passes a disc outside; not at all where an end is inside.

    Args:
        end0, end1: ends of the string in the plane, from the disc's centre, m.
        side: unit vector to the side on which to pass.
        radius: of the disc, m.
    """
    gap, near = minus(end1, end0), nearest_to_centre(end0, end1)
    wraps = ca.logic_or(dot2(near, near) <= radius * radius, dot2(side, near) < 0.0)
    for end in (end0, end1):
        wraps = ca.logic_and(wraps, dot2(end, end) >= radius * radius)
    wraps = ca.logic_and(wraps, dot2(gap, gap) >= SMALLEST)
    clockwise, counter = (_way(end0, end1, side, radius, sense, wraps) for sense in (-1.0, 1.0))
    score, other = (ca.if_else(way.crosses, -ca.inf, way.nearness) for way in (clockwise, counter))
    first_way = score > other
    crosses = ca.if_else(first_way, clockwise.crosses, counter.crosses)
    return Contact2(
        select2(first_way, clockwise.first, counter.first),
        select2(first_way, clockwise.last, counter.last),
        ca.if_else(first_way, clockwise.arc, counter.arc),
        ca.logic_and(wraps, ca.logic_not(crosses)),
    )


def _way(end0: Vec2, end1: Vec2, side: Vec2, radius: Scalar, sense: float, wraps: ca.SX) -> Way:
    """Return the way that turns clockwise (-1) or counterclockwise (1)."""
    first = tangent(end0, ca.SX(sense), wraps, radius)
    last = tangent(end1, ca.SX(-sense), wraps, radius)
    middle = unit2((first[0] + last[0], first[1] + last[1]))
    angle = sense * ca.atan2(cross2(first, last), dot2(first, last))
    arc = radius * ca.if_else(angle < 0.0, angle + 2.0 * ca.pi, angle)
    return Way(first, last, arc, dot2(middle, side), _cross(end0, first, end1, last))


def _cross(a: Vec2, b: Vec2, c: Vec2, d: Vec2) -> ca.SX:
    """Return whether the segments a b and c d cross each other."""
    ab, cd, ca_ = minus(b, a), minus(d, c), minus(a, c)
    area = ca.SX(cross2(ab, cd))
    apart = ca.fabs(area) < SMALLEST
    share = ca.if_else(apart, 1.0, area)
    along_ab, along_cd = cross2(cd, ca_) / share, cross2(ab, ca_) / share
    crossing = ca.SX(1)
    for place in (along_ab, along_cd):
        crossing = ca.logic_and(crossing, ca.logic_and(place >= 0.0, place <= 1.0))
    return ca.logic_and(ca.logic_not(apart), crossing)


def older_angle(A: Scalar, B: Scalar, angle: Scalar) -> tuple[ca.SX, ca.SX]:
    """Return the root p of `asin(A z) + asin(B z) - 2 asin(z) + G = 0`, `z = sin p`, and if found.

    It gives up where the function is positive at the start, where a step goes to the right or
    beyond the root, and after `MOST_STEPS`.
    """
    z = ca.SX(FIRST_SINE)
    error = _error(z, A, B, angle)
    failed = error > 0.0
    for _ in range(MOST_STEPS):
        going = ca.logic_and(ca.fabs(error) > NEWTON_TOLERANCE, ca.logic_not(failed))
        slope = sum(
            factor / ca.fmax(ca.sqrt(1.0 - (ratio * z) ** 2), SMALLEST)
            for factor, ratio in ((A, A), (B, B), (-2.0, 1.0))
        )
        falls = slope <= -SMALLEST
        ahead = z - error / ca.if_else(falls, slope, -1.0)
        left = ca.logic_and(falls, ahead <= z)
        ahead = ca.if_else(left, ahead, z)
        after = _error(ahead, A, B, angle)
        lost = ca.logic_or(ca.logic_not(left), after > NEWTON_TOLERANCE)
        failed = ca.logic_or(failed, ca.logic_and(going, lost))
        z, error = ca.if_else(going, ahead, z), ca.if_else(going, after, error)
    found = ca.logic_and(ca.logic_not(failed), ca.fabs(error) <= NEWTON_TOLERANCE)
    return ca.asin(z), found


def _error(z: ca.SX, A: Scalar, B: Scalar, angle: Scalar) -> ca.SX:
    return ca.SX(ca.asin(A * z) + ca.asin(B * z) - 2.0 * ca.asin(z) + angle)
