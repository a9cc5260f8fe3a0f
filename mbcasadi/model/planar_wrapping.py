"""A string that wraps around a disc in the plane, or through it, as MuJoCo decides it.

Outside: with ends e0, e1 at distances l0, l1 from the centre, the tangent points are the ends'
directions turned towards each other by `acos(r/l)`. The string takes the short way, and only
where the straight line hits the disc; it takes the long way where the point opposite to the side
lies between the ends. Inside: the string touches the disc at one point where both halves make the
same angle p with the radius; with `A = r/l0`, `B = r/l1` and G the angle between the ends,
`asin(A sin p) + asin(B sin p) - 2 p + G = 0` (MuJoCo, `mju_wrap`; measured with 4.0.0).

No branches: what does not apply is computed from harmless numbers and not selected, so values and
derivatives stay finite. At the states where wrapping begins or ends the derivative is that of one
side.
"""

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca

from mbcasadi.spatial import Scalar

Vec2 = tuple[Scalar, Scalar]

SMALLEST = 1e-15
"""MuJoCo's smallest length that is not zero (mjMINVAL)."""

NEWTON_STEPS = 12
"""Steps for p; 11 are the most that ends from 1e-8 to 10 radii off the disc have needed."""

NEWTON_TOLERANCE = 1e-6
"""Error of the equation, rad, at which MuJoCo's steps for p end, and ours with them."""


SolveAngle = Callable[[Scalar, Scalar, Scalar], tuple[ca.SX, ca.SX]]
"""(r/l0, r/l1, angle between the ends) → (angle p at the point of contact, whether it is found)."""


class Contact2(NamedTuple):
    """Where a string leaves for the disc and comes back, the arc between, and whether it does."""

    first: Vec2
    last: Vec2
    arc: Scalar
    touches: ca.SX


def around(end0: Vec2, end1: Vec2, side: Vec2 | None, radius: Scalar) -> Contact2:
    """Return how a string passes a disc outside; not at all where an end is inside.

    Args:
        end0, end1: ends of the string in the plane, from the disc's centre, m.
        side: unit vector to the side on which to pass, or None for the short way.
        radius: of the disc, m.
    """
    gap, near = minus(end1, end0), nearest_to_centre(end0, end1)
    turn = ca.SX(cross2(end0, end1))
    wraps, ccw, long = dot2(near, near) <= radius * radius, turn >= 0.0, ca.SX(0)
    if side is not None:
        before, after = cross2(end1, side) * turn, cross2(side, end0) * turn
        long = ca.logic_and(before > 0.0, after > 0.0)
        wraps = ca.logic_or(wraps, long)
        faces = ca.if_else(turn == 0.0, cross2(end0, side) >= 0.0, ccw)
        ccw = ca.if_else(long, ca.logic_not(ccw), faces)
    for end in (end0, end1):
        wraps = ca.logic_and(wraps, dot2(end, end) >= radius * radius)
    wraps = ca.logic_and(wraps, dot2(gap, gap) >= SMALLEST)
    sense = ca.if_else(ccw, 1.0, -1.0)
    first = tangent(end0, sense, wraps, radius)
    last = tangent(end1, -sense, wraps, radius)
    angle = sense * ca.atan2(cross2(first, last), dot2(first, last))
    # The short way is never negative, but for rounding where it begins.
    angle = ca.if_else(
        long, ca.if_else(angle < 0.0, angle + 2.0 * ca.pi, angle), ca.fmax(angle, 0.0)
    )
    return Contact2(first, last, radius * angle, wraps)


def through(end0: Vec2, end1: Vec2, radius: Scalar, solve: "SolveAngle") -> Contact2:
    """Return how a string passes a disc inside: it touches one point of the circle.

    It does not where an end is inside, or where the straight line crosses the disc.

    Args:
        end0, end1: ends of the string in the plane, from the disc's centre, m.
        radius: of the disc, m.
        solve: `angle_inside`, or that of an older MuJoCo.
    """
    touches, cosine = _touches_inside(end0, end1, radius)
    outside: Vec2 = (2.0 * radius, 0.0)  # harmless
    end0, end1 = select2(touches, end0, outside), select2(touches, end1, outside)
    apart = ca.logic_and(touches, cosine <= 1.0 - SMALLEST)
    A, B = radius / norm2(end0), radius / norm2(end1)
    p, is_solved = solve(A, B, ca.acos(ca.if_else(apart, cosine, 0.0)))
    apart = ca.logic_and(apart, is_solved)
    ccw = ca.SX(cross2(end0, end1)) > 0.0
    start = unit2(select2(ccw, end0, end1))
    turn = p - ca.asin(ca.if_else(ccw, A, B) * ca.sin(p))
    c, s = ca.cos(turn), ca.sin(turn)
    turned: Vec2 = (c * start[0] - s * start[1], s * start[0] + c * start[1])
    middle = unit2((0.5 * (end0[0] + end1[0]), 0.5 * (end0[1] + end1[1])))
    direction = select2(apart, turned, middle)
    point: Vec2 = (radius * direction[0], radius * direction[1])
    return Contact2(point, point, 0.0, touches)


def nearest_to_centre(end0: Vec2, end1: Vec2) -> Vec2:
    """Return the point of the segment that is nearest to the disc's centre."""
    gap = minus(end1, end0)
    square = dot2(gap, gap)
    place = -dot2(gap, end0) / ca.if_else(square < SMALLEST, 1.0, square)
    place = ca.fmin(ca.fmax(place, 0.0), 1.0)
    return (place * gap[0] + end0[0], place * gap[1] + end0[1])


def tangent(end: Vec2, sense: ca.SX, wraps: ca.SX, radius: Scalar) -> Vec2:
    """Return the tangent point `r (cos α e + sin α e⊥)`, `cos α = r/l`, of one end.

    Args:
        end: the end.
        sense: 1 to turn counterclockwise from the end, -1 clockwise.
        wraps: where it is needed.
        radius: of the disc, m.
    """
    square = ca.if_else(wraps, dot2(end, end), 2.0 * radius * radius)
    free = square - radius * radius
    root = ca.if_else(free > 0.0, ca.sqrt(ca.if_else(free > 0.0, free, 1.0)), 0.0)
    along, across = radius * radius / square, sense * radius * root / square
    return (end[0] * along - end[1] * across, end[1] * along + end[0] * across)


def _touches_inside(end0: Vec2, end1: Vec2, radius: Scalar) -> tuple[ca.SX, ca.SX]:
    """Return whether a string touches the circle inside, and the cosine between its ends."""
    length0, length1 = norm2(end0), norm2(end1)
    outside = ca.logic_and(length0 > radius, length1 > radius)
    gap = minus(end1, end0)
    square = dot2(gap, gap)
    wide = square > SMALLEST
    place = -dot2(gap, end0) / ca.if_else(wide, square, 1.0)
    near = (end0[0] + place * gap[0], end0[1] + place * gap[1])
    crosses = ca.logic_and(ca.logic_and(place > 0.0, place < 1.0), norm2(near) <= radius)
    clear = ca.logic_and(outside, ca.logic_not(ca.logic_and(wide, crosses)))
    product = ca.if_else(outside, 2.0 * length0 * length1, 1.0)
    cosine = (length0 * length0 + length1 * length1 - square) / product
    return ca.logic_and(clear, cosine >= SMALLEST - 1.0), cosine


def angle_inside(A: Scalar, B: Scalar, angle: Scalar) -> tuple[ca.SX, ca.SX]:
    """Return MuJoCo's root p of `asin(A sin p) + asin(B sin p) - 2 p + G = 0`, and that it is one.

    Newton's method from the right of a decreasing concave function, which never steps over the
    root. It stands still once the error is below MuJoCo's tolerance: so p is MuJoCo's to rounding,
    and like MuJoCo's up to 1e-6 rad away from the exact root.
    """
    p = ca.SX(0.5 * ca.pi)
    for _ in range(NEWTON_STEPS):
        sine, cosine = ca.sin(p), ca.cos(p)
        error = ca.asin(A * sine) + ca.asin(B * sine) - 2.0 * p + angle
        slope = ca.SX(-2.0)
        for ratio in (A, B):
            slope += ratio * cosine / ca.sqrt(1.0 - (ratio * sine) ** 2)
        p -= ca.if_else(ca.fabs(error) > NEWTON_TOLERANCE, error / slope, 0.0)
    return p, ca.SX(1)


def dot2(a: Vec2, b: Vec2) -> ca.SX:
    """Return `aᵀ b`."""
    return ca.SX(a[0] * b[0] + a[1] * b[1])


def norm2(a: Vec2) -> ca.SX:
    """Return `|a|`, with a finite derivative (zero) at zero."""
    square = dot2(a, a)
    return ca.if_else(square > 0.0, ca.sqrt(ca.if_else(square > 0.0, square, 1.0)), 0.0)


def unit2(a: Vec2) -> Vec2:
    """Return `a/|a|`, (1, 0) where a is zero, as MuJoCo."""
    length = norm2(a)
    there = length >= SMALLEST
    length = ca.if_else(there, length, 1.0)
    return ca.if_else(there, a[0] / length, 1.0), ca.if_else(there, a[1] / length, 0.0)


def select2(condition: ca.SX, a: Vec2, b: Vec2) -> Vec2:
    """Return a where the condition holds, else b."""
    return ca.if_else(condition, a[0], b[0]), ca.if_else(condition, a[1], b[1])


def minus(a: Vec2, b: Vec2) -> Vec2:
    """Return `a - b`."""
    return (a[0] - b[0], a[1] - b[1])


def cross2(a: Vec2, b: Vec2) -> Scalar:
    """Return the component of `a × b` across the plane."""
    return a[0] * b[1] - a[1] * b[0]
