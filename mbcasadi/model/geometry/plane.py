"""Shapes on a plane.

The points of a shape that may touch a plane with the unit normal n are

    p = c + R x + d(n),   gap = nᵀ (p - o),

with a constant x in the axes of the geom (a `ContactSpot`), o on the plane, and d, which moves over
the surface when the shape rolls:

    sphere, capsule:       d = -r n,
    cylinder that lies:    d = -r u / |u|,  u = n - a (aᵀ n), a its axis,
    ellipsoid:             d = -R S² Rᵀ n / |S Rᵀ n|, S its half axes,
    box, standing cylinder, mesh: d = 0, x a corner, a point of the rim, a vertex of the hull.

Each p is the lowest point of its part of the shape, so that `dgap/dt` is nᵀ times the velocity of
the material at p, although p moves over the surface. Only u is not smooth: it vanishes where the
cylinder stands.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Geom
from mbcasadi.model.geometry.witness import Placed, Witness, safe_length

Array = NDArray[np.float64]

STANDING = float(np.cos(np.deg2rad(30.0)))
"""Cosine between the axis of a cylinder and the normal above which it stands on a disc."""
LEVEL = 0.01
"""Share of a mesh's largest extent within which vertices count as equally low."""
RIM_ANGLES = (0, 120, 240)  # degrees from the x axis: the points that MuJoCo takes of a flat disc


class ContactSpot(NamedTuple):
    """A part of a geom that may touch a plane.

    Attributes:
        label: its name on the geom; "" where there is only one.
        at: (3,) x, in the axes of the geom, m.
        rolls: d is not zero.
    """

    label: str
    at: Array
    rolls: bool


def spots(geom: Geom) -> tuple[ContactSpot, ...]:
    """Return all spots of a geom that may touch a plane; none of a kind without a formula.

    Corners of a box are numbered as in MuJoCo: bit k of the number is set where coordinate k is
    positive. A cylinder has `edge +` and `edge -`, the lowest points of its two rims, and the
    points `rim +0` to `rim -240` that are fixed to it, for where it stands.
    """
    match geom.kind:
        case "sphere" | "ellipsoid":
            return (ContactSpot("", np.zeros(3), True),)
        case "capsule":
            return tuple(ContactSpot(f"end {s}", _end(geom, s), True) for s in "+-")
        case "cylinder":
            edges = [ContactSpot(f"edge {s}", _end(geom, s), True) for s in "+-"]
            return (*edges, *(_rim(geom, s, angle) for s in "+-" for angle in RIM_ANGLES))
        case "box":
            return tuple(_corner(geom, k) for k in range(8))
        case "mesh":
            return tuple(ContactSpot(f"vertex {k}", x, False) for k, x in enumerate(geom.points))
    return ()


def spot_of(geom: Geom, label: str) -> ContactSpot | None:
    """Return the spot of a label: one of `spots`, or a point of a rim at any whole degree."""
    sign, angle = label.removeprefix("rim ")[:1], label.removeprefix("rim ")[1:]
    has_rims = geom.kind in ("cylinder", "capsule") and label.startswith("rim ")
    if has_rims and sign in "+-" and angle.isdecimal():
        return _rim(geom, sign, int(angle)) if label == f"rim {sign}{int(angle) % 360}" else None
    return next((spot for spot in spots(geom) if spot.label == label), None)


def lowest_of_rim(geom: Geom, sign: str, R: Array, n: Array) -> ContactSpot:
    """Return the point of a rim, fixed to the geom, that is lowest, to a degree.

    Args:
        geom: a cylinder that lies, or a capsule, whose rims are those of its cylinder.
        sign: "+" or "-", the rim.
        R: (3, 3) its rotation in the world.
        n: (3,) normal of the plane.
    """
    x, y, _ = -n @ R
    return _rim(geom, sign, round(float(np.rad2deg(np.arctan2(y, x)))) % 360)


def facing_spots(geom: Geom, R: Array, n: Array) -> tuple[ContactSpot, ...]:
    """Return the spots that touch first, of a geom with the rotation R on a plane.

    Of a box these are the corners of the face that looks most towards the plane; of a cylinder
    whose axis is within 30° of the normal, three points on the rim of the lower disc, else the
    lowest points of both rims. (MuJoCo reports the first four corners below the centre: the same
    ones, unless a flat box is tilted steeply.) Of a mesh they are up to four vertices of the lowest
    ones, the corners of the polygon that these span.

    Args:
        geom: the shape.
        R: (3, 3) its rotation in the world.
        n: (3,) normal of the plane.
    """
    if geom.kind == "box":
        cosines = n @ R
        k = int(np.argmax(np.abs(cosines)))
        return tuple(spot for spot in spots(geom) if cosines[k] * spot.at[k] < 0)
    if geom.kind == "cylinder":
        upright = float(n @ R[:, 2])
        kind = "edge" if abs(upright) <= STANDING else "rim -" if upright > 0 else "rim +"
        return tuple(spot for spot in spots(geom) if spot.label.startswith(kind))
    found = spots(geom)
    return tuple(found[k] for k in _lowest(geom.points, n @ R)) if geom.kind == "mesh" else found


def _lowest(points: Array, n: Array) -> list[int]:
    """Return up to four of the points (k, 3) that stand on a plane with the normal n.

    The lowest one, the one farthest from it, the one farthest from the line of both, and the one
    farthest from that line on the other side.
    """
    heights = points @ n
    near = np.flatnonzero(heights <= heights.min() + LEVEL * np.max(np.ptp(points, axis=0)))
    flat = points - np.outer(heights, n)
    chosen = [int(np.argmin(heights))]
    away = flat[near] - flat[chosen[0]]
    chosen.append(int(near[np.argmax(np.linalg.norm(away, axis=1))]))
    beside = away @ np.cross(n, flat[chosen[1]] - flat[chosen[0]])
    chosen += [int(near[np.argmax(beside)]), int(near[np.argmin(beside)])]
    return sorted(set(chosen))


def rolling_offset(geom: Geom, R: ca.SX, n: ca.SX) -> ca.SX:
    """Return (3, 1) d, from a spot that rolls to the surface, m, world axes.

    Args:
        geom: sphere, capsule, cylinder or ellipsoid.
        R: (3, 3) its rotation.
        n: (3, 1) normal of the plane.
    """
    if geom.kind == "ellipsoid":
        stretched = ca.DM(geom.size) * (R.T @ n)
        return ca.SX(-R @ (ca.DM(geom.size) * stretched) / ca.norm_2(stretched))
    if geom.kind == "cylinder":
        across = n - R[:, 2] * ca.dot(R[:, 2], n)
        return ca.SX(-geom.size[0] * across / safe_length(across))
    return ca.SX(-geom.size[0] * n)


def plane_witness(plane: Placed, shape: Placed, spot: ContactSpot) -> Witness:
    """Return the contact of one spot of a shape with a plane."""
    n = plane.R[:, 2]
    surface = shape.p + shape.R @ ca.DM(spot.at)
    if spot.rolls:
        surface += rolling_offset(shape.geom, shape.R, n)
    gap = ca.dot(n, surface - plane.p)
    return Witness(gap, surface - n * (gap / 2), n)


def _end(geom: Geom, sign: str) -> Array:
    """Return the end of the axis of a capsule or cylinder."""
    return np.array([0.0, 0.0, geom.size[1] if sign == "+" else -geom.size[1]])


def _rim(geom: Geom, sign: str, angle: int) -> ContactSpot:
    """Return a point of the rim of a cylinder, or of that of a capsule."""
    turn = np.deg2rad(angle)
    across = geom.size[0] * np.array([np.cos(turn), np.sin(turn), 0.0])
    return ContactSpot(f"rim {sign}{angle}", _end(geom, sign) + across, False)


def _corner(geom: Geom, number: int) -> ContactSpot:
    """Return a corner of a box."""
    signs = [1.0 if number & (1 << k) else -1.0 for k in range(3)]
    return ContactSpot(f"corner {number}", geom.size * np.array(signs), False)
