"""Cylinders that lie side by side under one body: a sole, which stands and does not roll.

A cylinder that lies alone, or in one line with others, rolls: its lowest points move over its rims.
Where points beside this line touch too, the body can only tip over an edge. Lowest points of two
cylinders would then be rows of two ways of rolling, which contradict each other as soon as the body
turns: `J v = 0` is the same, its rate is not. So these cylinders touch at the points of their rims
that are lowest in one pose, fixed to the body, as the corners of a box.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.model import geometry
from mbcasadi.system.geometry_contacts import GeometryContact, placed

Array = NDArray[np.float64]

LEAN = 0.1
"""Height over the lowest point, by the distance from it, up to which points stand: 6°."""

AREA = 0.05
"""Width of what touches, of its length, below which it is a line."""


def with_soles(contacts: Sequence[GeometryContact], q: Array) -> Iterator[GeometryContact]:
    """Yield contacts, those of cylinders that are parts of soles at points fixed to their bodies.

    Args:
        contacts: of a model.
        q: (nq,) configuration at which the sides that touch are chosen.
    """
    bodies: dict[tuple[str, int], list[GeometryContact]] = {}
    for contact in contacts:
        geom = contact.geoms[1]
        if contact.geoms[0].kind == "plane":
            root = contact.tree.bodies[geom.body].weld_root
            bodies.setdefault((contact.geom1, root), []).append(contact)
    fixed = {geom for own in bodies.values() for geom in _cylinders_of_sole(own, q)}
    for contact in contacts:
        yield at_rim(contact, q) if (contact.geom1, contact.geom2) in fixed else contact


def _cylinders_of_sole(contacts: Sequence[GeometryContact], q: Array) -> set[tuple[str, str]]:
    """Return plane and cylinder of those that lie, where the contacts of a body are a sole."""
    lying = {(each.geom1, each.geom2) for each in contacts if _lies(each)}
    if not lying or len({each.geom2 for each in contacts}) < 2:
        return set()
    found = [[np.array(x).ravel() for x in each.gap(q)] for each in contacts]
    gaps, points = np.concatenate([x[0] for x in found]), np.array([x[1] for x in found])
    n = found[0][2]
    flat = points - np.outer(points @ n, n)
    away = np.linalg.norm(flat - flat[np.argmin(gaps)], axis=1)
    touching = gaps <= gaps.min() + LEAN * away
    spread = np.linalg.svd(flat[touching] - flat[touching].mean(axis=0), compute_uv=False)
    if len(spread) < 2 or spread[1] <= AREA * spread[0]:
        return set()
    return lying.intersection(
        (each.geom1, each.geom2) for each, near in zip(contacts, touching, strict=True) if near
    )


def _lies(contact: GeometryContact) -> bool:
    return contact.geoms[1].kind == "cylinder" and contact.label.startswith("edge")


def at_rim(contact: GeometryContact, q: Array) -> GeometryContact:
    """Return the contact of a cylinder or capsule at the point of its rim that is lowest at q.

    Args:
        contact: with a plane, at an edge or an end of what lies.
        q: (nq,) configuration.
    """
    plane, shape = (placed(contact.tree, geom, ca.SX(q)) for geom in contact.geoms)
    n, R = (np.array(ca.evalf(x)) for x in (plane.R[:, 2], shape.R))
    spot = geometry.lowest_of_rim(contact.geoms[1], contact.label[-1], R, n.ravel())
    return replace(contact, label=spot.label, _spot=spot)


def on_rim(contacts: Iterable[GeometryContact], name: str) -> GeometryContact | None:
    """Return the contact of this name at a point of a rim, as of `at_rim`; None where it is none.

    Args:
        contacts: of a model.
        name: `foot on floor, rim +90`.
    """
    pair, _, label = name.rpartition(", ")
    if label.startswith("rim "):
        for each in contacts:
            spot = geometry.spot_of(each.geoms[1], label)
            if spot is not None and pair == f"{each.geom2} on {each.geom1}":
                return replace(each, label=spot.label, _spot=spot)
    return None
