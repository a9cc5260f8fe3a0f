"""The contacts of a plan's feet: as few points as the shapes of a foot span."""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.system import GeometryContact, System
from mbcasadi.system.cylinder_soles import AREA, at_rim
from mbcasadi.validation.spec.activities import FootContact

Array = NDArray[np.float64]


def contacts_of_plan(
    system: System, feet: Iterable[GeometryContact], round_geoms: Iterable[str], q: Array
) -> list[FootContact]:
    """Return the contacts of a plan: the middle of round shapes, which roll; corners of others.

    Where a foot is one capsule that lies, they are points fixed to its two ends.

    Of the points of a body those that others span are left out, seen from above: on a line between
    two, or inside. They would only add rows, and a leg of five joints cannot keep three points of
    an arched foot on the ground.

    Args:
        system: that stands.
        feet: its contacts with the ground.
        round_geoms: names of the shapes that roll.
        q: (nq,) pose.
    """
    feet = [*feet]
    lying = {*_lying(feet)}
    points = [at_rim(each, q) if each.geom2 in lying else each for each in feet]
    bodies: dict[int, list[tuple[FootContact, Array]]] = {}
    for foot, place, body in _points(system, points, {*round_geoms} - lying, q):
        bodies.setdefault(body, []).append((foot, place))
    return [own[i][0] for own in bodies.values() for i in corners([place for _, place in own])]


def corners(places: Sequence[Array]) -> list[int]:
    """Return which of these places (2,) the others do not span, in their order."""
    from scipy.spatial import ConvexHull

    if len(places) <= 2:
        return [*range(len(places))]
    points = np.array(places) - np.mean(places, axis=0)
    _, (length, width), axes = np.linalg.svd(points, full_matrices=False)
    if width <= AREA * length:
        along = points @ axes[0]
        return sorted({int(np.argmin(along)), int(np.argmax(along))})
    return sorted(int(i) for i in ConvexHull(points).vertices)


def _lying(feet: Iterable[GeometryContact]) -> Iterator[str]:
    """Yield the names of capsules that touch with both ends and are all of a foot."""
    bodies: dict[int, list[GeometryContact]] = {}
    for each in feet:
        bodies.setdefault(_body(each), []).append(each)
    for own in bodies.values():
        geoms = {each.geom2: each.geoms[1].kind for each in own}
        if len(own) == 2 and [*geoms.values()] == ["capsule"]:
            yield from geoms


def _body(contact: GeometryContact) -> int:
    """Return the rigid body of a foot."""
    return contact.tree.bodies[contact.geoms[1].body].weld_root


def _points(
    system: System, feet: Iterable[GeometryContact], round_geoms: Container[str], q: Array
) -> Iterator[tuple[FootContact, Array, int]]:
    """Yield each contact once, with its place (2,) from above and its rigid body."""
    seen = set[str]()
    for each in feet:
        kind: Literal["geom", "contact"] = "geom" if each.geom2 in round_geoms else "contact"
        frame = each.geom2 if kind == "geom" else each.name
        if frame in seen:
            continue
        seen.add(frame)
        place = system.frame(frame, "geom").pose(q)[0] if kind == "geom" else each.gap(q)[1]
        foot = FootContact(frame, kind, float(each.friction[0]), each.geom2)
        yield foot, np.array(place, dtype=float).ravel()[:2], _body(each)
