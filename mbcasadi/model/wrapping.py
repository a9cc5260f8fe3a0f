"""The path of a string between two points around a sphere or a cylinder.

A sphere: in the plane through both points and the centre. A cylinder: in the plane across its
axis, z linear in the length so far, which is the straight line on the unrolled surface; the
cylinder has no ends. The length is that of the shortest path, so its gradient is that of the
straight pieces with the points of contact held on the geom (MuJoCo, `mju_wrap`).
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.description.tendons import WrapGeneration, WrapKind
from mbcasadi.model.older_wrapping import around_on_nearest_side, older_angle
from mbcasadi.model.planar_wrapping import (
    SMALLEST,
    Contact2,
    Vec2,
    angle_inside,
    around,
    norm2,
    select2,
    through,
    unit2,
)
from mbcasadi.spatial import Scalar, Vec3, add, cross, dot, scale, subtract

Inside = ca.SX | bool
"""Whether a string passes inside, known beforehand or not."""


class Wrap(NamedTuple):
    """The points of contact, in the geom's axes, the length between, and if there is contact."""

    first: Vec3
    last: Vec3
    arc: Scalar
    touches: ca.SX


def wrap(
    kind: WrapKind,
    radius: Scalar,
    x0: Vec3,
    x1: Vec3,
    side: Vec3 | None,
    generation: WrapGeneration = "4.0",
) -> Wrap:
    """Return how a string from x0 to x1 passes a geom.

    Args:
        kind: "sphere" or "cylinder" (axis z).
        radius: m.
        x0, x1: the ends in the geom's frame, m.
        side: a point on the side on which to pass, or None; nearer to the centre than the
            radius: the string passes inside. In the geom's frame, m.
        generation: of MuJoCo, where there is a side.
    """
    plane: tuple[Vec3, Vec3] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    if kind == "sphere":
        plane = _plane_of(x0, x1)
    ends = _in_plane(plane, x0), _in_plane(plane, x1)
    contact = _contact(ends, plane, side, radius, generation)
    touches = contact.touches
    for x in (x0, x1):
        touches = ca.logic_and(touches, ca.SX(dot(x, x)) >= SMALLEST**2)
    first, last = (_in_space(plane, point) for point in (contact.first, contact.last))
    if kind == "sphere":
        return Wrap(first, last, contact.arc, touches)
    before, after = (
        norm2((end[0] - point[0], end[1] - point[1]))
        for end, point in zip(ends, (contact.first, contact.last), strict=True)
    )
    total = before + contact.arc + after
    rise = (x1[2] - x0[2]) / ca.if_else(total > 0.0, total, 1.0)
    z0, z1 = x0[2] + rise * before, x0[2] + rise * (before + contact.arc)
    arc = norm2((contact.arc, z1 - z0))
    return Wrap((first[0], first[1], z0), (last[0], last[1], z1), arc, touches)


def _contact(
    ends: tuple[Vec2, Vec2],
    plane: tuple[Vec3, Vec3],
    side: Vec3 | None,
    radius: Scalar,
    generation: WrapGeneration,
) -> Contact2:
    """Return the contact in the plane, inside or around as the place of the side tells."""
    if side is None:
        return around(*ends, None, radius)
    angle = older_angle if generation == "3.10" else angle_inside
    inside = ca.SX(dot(side, side) < radius * radius)
    if inside.is_one():
        return through(*ends, radius, angle)
    way = around if generation == "4.0" else around_on_nearest_side
    outer = way(*ends, unit2(_in_plane(plane, side)), radius)
    if inside.is_zero():
        return outer
    inner = through(*ends, radius, angle)
    return Contact2(
        select2(inside, inner.first, outer.first),
        select2(inside, inner.last, outer.last),
        ca.if_else(inside, inner.arc, outer.arc),
        ca.if_else(inside, inner.touches, outer.touches),
    )


def _plane_of(x0: Vec3, x1: Vec3) -> tuple[Vec3, Vec3]:
    """Return the axes of the plane through both points and the origin; x0 is on the first.

    Where they are on one line through it, the second axis is the one that MuJoCo takes.
    """
    x_axis = unit3(x0)
    normal = cross(x0, x1)
    inline = ca.SX(dot(normal, normal)) < SMALLEST**2
    sizes = [ca.fabs(c) for c in x_axis]
    along_z = ca.logic_and(sizes[2] > sizes[0], sizes[2] > sizes[1])
    along_y = ca.logic_and(sizes[1] > sizes[0], sizes[1] > sizes[2])
    other: Vec3 = (
        ca.if_else(ca.logic_or(along_y, along_z), 1.0, 0.0),
        ca.if_else(along_y, 0.0, 1.0),
        ca.if_else(along_z, 0.0, 1.0),
    )
    normal = unit3(select3(inline, cross(x_axis, other), normal))
    return x_axis, cross(normal, x_axis)


def _in_plane(plane: tuple[Vec3, Vec3], x: Vec3) -> Vec2:
    return dot(plane[0], x), dot(plane[1], x)


def _in_space(plane: tuple[Vec3, Vec3], point: Vec2) -> Vec3:
    return add(scale(point[0], plane[0]), scale(point[1], plane[1]))


def distance(a: Vec3, b: Vec3) -> ca.SX:
    """Return `|b - a|`, with a finite derivative (zero) at zero."""
    gap = subtract(b, a)
    square = ca.SX(dot(gap, gap))
    there = square > 0.0
    return ca.if_else(there, ca.sqrt(ca.if_else(there, square, 1.0)), 0.0)


def unit3(a: Vec3) -> Vec3:
    """Return `a/|a|`, (1, 0, 0) where a is zero, as MuJoCo."""
    square = ca.SX(dot(a, a))
    there = square >= SMALLEST**2
    length = ca.sqrt(ca.if_else(there, square, 1.0))
    x, y, z = (component / length for component in a)
    return ca.if_else(there, x, 1.0), ca.if_else(there, y, 0.0), ca.if_else(there, z, 0.0)


def select3(condition: ca.SX, a: Vec3, b: Vec3) -> Vec3:
    """Return a where the condition holds, else b."""
    x, y, z = (ca.if_else(condition, s, t) for s, t in zip(a, b, strict=True))
    return x, y, z
