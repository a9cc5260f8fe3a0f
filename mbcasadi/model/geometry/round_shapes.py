"""Pairs of spheres and capsules, and of a sphere with a cylinder or box.

A capsule is a sphere at the nearest point of its axis, so all pairs end in that of two spheres with
the centres c1, c2:

    gap = |c2 - c1| - r1 - r2,   n = (c2 - c1) / |c2 - c1|,   point = c1 + (r1 + gap/2) n.

A sphere against a cylinder or box is one against the nearest point of it, with no radius.

Where a nearest point passes from the side of a capsule to its end, or from a face to an edge, first
derivatives agree and second ones are one-sided. First derivatives are one-sided where capsules are
parallel (the nearest points are then not unique; one of them is given, MuJoCo gives two), where a
sphere whose centre is inside a cylinder or box is as near to another face, and where centres
coincide. Derivatives are finite everywhere.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.description import Geom
from mbcasadi.model.geometry.witness import TINY, Placed, Witness, safe_length

PAIRS = (
    ("sphere", "sphere"),
    ("sphere", "capsule"),
    ("capsule", "capsule"),
    ("sphere", "cylinder"),
    ("sphere", "box"),
)
"""Kinds of geoms that have a formula, in MuJoCo's order."""


def round_witness(first: Placed, second: Placed) -> Witness:
    """Return the contact of two geoms whose kinds are one of `PAIRS`."""
    if second.geom.kind in ("box", "cylinder"):
        return _sphere_against(first, second)
    c1, c2 = first.p, second.p
    if first.geom.kind == "capsule":
        c1, c2 = _nearest_of_segments(first, second)
    elif second.geom.kind == "capsule":
        c2 = _nearest_on_segment(second, c1)
    return _spheres(c1, float(first.geom.size[0]), c2, float(second.geom.size[0]))


def _spheres(c1: ca.SX, r1: float, c2: ca.SX, r2: float) -> Witness:
    """Return the contact of two spheres; the normal is x where the centres coincide."""
    away = c2 - c1
    apart = ca.sumsqr(away) > TINY
    n = ca.if_else(apart, away / safe_length(away), ca.SX([1, 0, 0]))
    gap = ca.if_else(apart, safe_length(away), 0) - r1 - r2
    return Witness(gap, c1 + n * (r1 + gap / 2), n)


def _clip(x: ca.SX, bound: float) -> ca.SX:
    return ca.fmin(ca.fmax(x, -bound), bound)


def _nearest_on_segment(capsule: Placed, point: ca.SX) -> ca.SX:
    """Return the point of a capsule's axis that is nearest to a point."""
    axis, half = capsule.R[:, 2], float(capsule.geom.size[1])
    return capsule.p + axis * _clip(ca.dot(axis, point - capsule.p), half)


def _nearest_of_segments(first: Placed, second: Placed) -> tuple[ca.SX, ca.SX]:
    """Return the nearest points of the axes of two capsules.

    With coordinates x1, x2 along the unit axes a1, a2, `b = a1ᵀ a2` and `e = p2 - p1`, the lines
    are nearest at `x1 = (a1ᵀ e - b a2ᵀ e) / (1 - b²)`. Each coordinate is then clipped to its
    segment and the other one follows; a second pass for the first one makes this exact.
    """
    a1, a2, e = first.R[:, 2], second.R[:, 2], second.p - first.p
    h1, h2 = float(first.geom.size[1]), float(second.geom.size[1])
    b, e1, e2 = ca.dot(a1, a2), ca.dot(a1, e), ca.dot(a2, e)
    sine2 = 1 - b * b
    x1 = _clip((e1 - b * e2) / ca.if_else(sine2 > TINY, sine2, 1.0), h1)
    x2 = _clip(b * x1 - e2, h2)
    x1 = _clip(b * x2 + e1, h1)
    return first.p + a1 * x1, second.p + a2 * x2


class _Depth(NamedTuple):
    """A sphere's centre in the axes of another shape.

    Attributes:
        into: (3, 1) from the centre to the nearest point of the shape; exactly zero inside it.
        inward: (3, 1) unit vector from the nearest surface into the shape, for a centre inside.
        depth: distance of a centre inside to that surface, m.
    """

    into: ca.SX
    inward: ca.SX
    depth: ca.SX


def _sphere_against(sphere: Placed, other: Placed) -> Witness:
    """Return the contact of a sphere with the nearest point of a box or cylinder.

    A sphere whose centre is inside has to leave through the surface that is nearest.
    """
    local = other.R.T @ (sphere.p - other.p)
    of_kind = _depth_in_box if other.geom.kind == "box" else _depth_in_cylinder
    into, inward, depth = of_kind(local, other.geom)
    outside, r = ca.sumsqr(into) > TINY, float(sphere.geom.size[0])
    n = other.R @ ca.if_else(outside, into / safe_length(into), inward)
    gap = ca.if_else(outside, safe_length(into), -depth) - r
    return Witness(gap, sphere.p + n * (r + gap / 2), n)


def _depth_in_box(local: ca.SX, box: Geom) -> _Depth:
    """Return where a point is in a box."""
    pairs = list(zip(ca.vertsplit(local), map(float, box.size), strict=True))
    into = ca.vertcat(*(_clip(x, half) - x for x, half in pairs))
    depths = [half - ca.fabs(x) for x, half in pairs]
    depth = ca.fmin(ca.fmin(depths[0], depths[1]), depths[2])
    inward, taken = [], ca.SX(0)
    for (x, _), own in zip(pairs, depths, strict=True):
        chosen = ca.logic_and(own <= depth, ca.logic_not(taken))
        inward.append(ca.if_else(chosen, _against(x), 0.0))
        taken = ca.logic_or(taken, chosen)
    return _Depth(into, ca.vertcat(*inward), depth)


def _depth_in_cylinder(local: ca.SX, cylinder: Geom) -> _Depth:
    """Return where a point is in a cylinder; on its axis the way out is along its x axis."""
    radius, half = float(cylinder.size[0]), float(cylinder.size[1])
    across, x = local[:2], local[2]
    off_axis = ca.sumsqr(across) > TINY
    length = safe_length(across)
    out = ca.if_else(off_axis, across / length, ca.SX([1, 0]))
    from_axis = ca.if_else(off_axis, length, 0)
    into = ca.vertcat(across * (ca.fmin(radius / length, 1) - 1), _clip(x, half) - x)
    to_side, to_disc = radius - from_axis, half - ca.fabs(x)
    through_side = ca.vertcat(-out, 0)
    through_disc = ca.vertcat(0, 0, _against(x))
    inward = ca.if_else(to_disc < to_side, through_disc, through_side)
    return _Depth(into, inward, ca.fmin(to_side, to_disc))


def _against(x: ca.SX) -> ca.SX:
    """Return the sign that leads from the nearer end of an axis to its middle."""
    return ca.if_else(x >= 0, -1.0, 1.0)
