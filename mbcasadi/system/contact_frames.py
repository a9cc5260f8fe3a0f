"""Frames at which a geom touches a plane of the world, as `FrameFunctions`.

The origin is the point of the geom's surface that touches, `p = c + R x + d(q)`
(`model/geometry/plane.py`), its axes are those of the body. The Jacobian is that of the material
of the body at that point,

    J = [J_x - [d]× J_ω; J_ω],   J̇ v = [b_x + b_ω × d + ω × ḋ; b_ω],

with J_x, b_x of the point x that is fixed to the body. Where d moves over the surface, J is not the
derivative of p: a sphere that rolls has `J v = 0` at its lowest point, while that point moves on.
J̇ v is the rate of change of `J v`, so that `J a + J̇ v = 0` keeps the foot from slipping whether it
rolls or not. The acceleration of the material in a contact is another thing: it is
`ω × (ω × d)` where a sphere rolls, towards its centre.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi import model
from mbcasadi.description import Frame, Geom, RigidTree
from mbcasadi.model import geometry
from mbcasadi.model.geometry import ContactSpot
from mbcasadi.model.placement import rotation_of
from mbcasadi.model.transmission import frame_quat
from mbcasadi.system.frames import Array, Carrier, FrameFunctions
from mbcasadi.system.geom_pairs import is_static
from mbcasadi.system.tree_frames import point_on_root

UNTURNED = np.array([1.0, 0.0, 0.0, 0.0])


class PlaneSpot(NamedTuple):
    """A spot of a geom that moves, and the plane of the world that it may touch."""

    plane: Geom
    geom: Geom
    spot: ContactSpot

    @property
    def name(self) -> str:
        """`foot on floor`, or `foot on floor, corner 3`."""
        label = f", {self.spot.label}" if self.spot.label else ""
        return f"{self.geom.name} on {self.plane.name}{label}"


def plane_spots(tree: RigidTree) -> dict[str, PlaneSpot]:
    """Return all spots of all geoms that move, on all planes, by their names."""
    planes = [geom for geom in tree.geoms if geom.kind == "plane" and is_static(tree, geom)]
    places = (
        PlaneSpot(plane, geom, spot)
        for geom in tree.geoms
        if not is_static(tree, geom)
        for plane in planes
        for spot in geometry.spots(geom)
    )
    return {place.name: place for place in places}


def plane_spot(tree: RigidTree, name: str) -> PlaneSpot | None:
    """Return the spot of a name, one of `plane_spots` or another point of a cylinder's rim."""
    moving = [geom for geom in tree.geoms if not is_static(tree, geom)]
    for plane in (geom for geom in tree.geoms if geom.kind == "plane" and is_static(tree, geom)):
        for geom in moving:
            pair = f"{geom.name} on {plane.name}"
            if name == pair or name.startswith(f"{pair}, "):
                spot = geometry.spot_of(geom, name[len(pair) + 2 :])
                if spot is not None:
                    return PlaneSpot(plane, geom, spot)
    return None


def plane_normal(tree: RigidTree, plane: Geom) -> Array:
    """Return the (3,) normal of a plane that is fixed to the world."""
    R = model.frame_pose(tree, frame_of_geom(plane), ca.SX.sym("q", tree.nq))[1]
    return np.array(ca.evalf(R[:, 2])).ravel()


def frame_of_geom(geom: Geom) -> Frame:
    """Return the frame of a geom."""
    return Frame(geom.name, "geom", geom.body, geom.pos, geom.quat)


def contact_frame(tree: RigidTree, place: PlaneSpot) -> FrameFunctions:
    """Build the Functions of the frame at which a spot touches its plane."""
    at = point_on_body(place.geom, place.spot)
    return _frame_at(tree, place, Frame(place.name, "body", place.geom.body, at, UNTURNED))


def point_on_body(geom: Geom, spot: ContactSpot) -> Array:
    """Return the (3,) point x of a spot in the axes of the geom's body, m."""
    return geom.pos + rotation_of(geom.quat) @ spot.at


def _frame_at(tree: RigidTree, place: PlaneSpot, fixed: Frame) -> FrameFunctions:
    """Return the frame with the offset d from a frame that is fixed to the body."""
    q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
    d = _offset(tree, place, q)
    p, R = model.frame_pose(tree, fixed, q)
    J, bias = model.frame_jacobian(tree, fixed, q), model.frame_bias(tree, fixed, q, v)
    d_rate = model.tangent_rate(tree, d, q, v)
    w = J[3:, :] @ v
    J = ca.vertcat(J[:3, :] - ca.skew(d) @ J[3:, :], J[3:, :])
    moving = ca.cross(bias[3:], d) + ca.cross(w, d_rate)
    expressions = {
        "pose": ([q], {"p": p + d, "R": R}),
        "jacobian": ([q], {"J": J}),
        "velocity": ([q, v], {"velocity": J @ v}),
        "bias": ([q, v], {"J_dot_v": ca.vertcat(bias[:3] + moving, bias[3:])}),
    }
    functions = {
        key: ca.Function(
            f"contact_{key}",
            inputs,
            [ca.densify(x) if key != "jacobian" else ca.sparsify(x) for x in outputs.values()],
            ["q", "v"][: len(inputs)],
            [*outputs],
            {"cse": True},
        )
        for key, (inputs, outputs) in expressions.items()
    }
    attitude = ca.vertcat(*frame_quat(tree, fixed, q))
    return FrameFunctions(
        name=fixed.name,
        **functions,
        attitude=ca.Function("contact_attitude", [q], [attitude], ["q"], ["quat"]),
        carrier=_carrier(tree, place, fixed),
    )


def _offset(tree: RigidTree, place: PlaneSpot, q: ca.SX) -> ca.SX:
    """Return (3, 1) d, world axes, m."""
    if not place.spot.rolls:
        return ca.SX(3, 1)
    R = model.frame_pose(tree, frame_of_geom(place.geom), q)[1]
    return ca.sparsify(
        geometry.rolling_offset(place.geom, R, ca.SX(plane_normal(tree, place.plane)))
    )


def _carrier(tree: RigidTree, place: PlaneSpot, fixed: Frame) -> Carrier:
    """Return the body; spots with the same offset d are points x of it."""
    root = tree.bodies[fixed.body].weld_root

    def frame_at(point: Array) -> FrameFunctions:
        return _frame_at(tree, place, Frame("", "body", root, point, UNTURNED))

    return Carrier(root, point_on_root(tree, root, fixed), frame_at, _rolling(tree, place))


def _rolling(tree: RigidTree, place: PlaneSpot) -> tuple[object, ...]:
    """Return what d depends on: equal for spots of one body with the same d, () without one."""
    if not place.spot.rolls:
        return ()
    n = tuple(np.round(plane_normal(tree, place.plane), 12).tolist())
    if place.geom.kind in ("sphere", "capsule"):
        return ("round", float(place.geom.size[0]), n)
    return (place.geom.name, n)
