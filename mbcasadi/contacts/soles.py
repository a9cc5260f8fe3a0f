"""Flat feet: the cone of the wrenches that forces within the pyramids of a sole's corners can give.

A corner r with an edge e of its pyramid (normal part 1) gives the wrench `(e, r × e)` about the
middle of the sole. All forces together give the convex cone of these rays: friction, centre of
pressure inside the sole, and torsional friction in one (Caron, Pham and Nakamura 2015 have it in
closed form for rectangles and four sides). The rays end on the plane of normal force 1, where
their convex hull is a polytope in five dimensions; its faces are the rows `F wrench <= 0`.

The sole's own axes stand for those of the ground: a foot that is flat on it has the same normal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError

Array = NDArray[np.float64]

LEAST_CORNERS = 3
FLAT = 1e-6
"""Points farther than this from a plane, relative to their spread, are no sole."""
LEAST_COSINE = 0.5
"""A sole that is turned farther than this from the ground leaves open on which side it is."""
SAME_FACE = 1e-7
"""Relative difference of the rows of one face, which is found in several simplices."""


@dataclass(frozen=True)
class Sole:
    """A flat foot.

    Attributes:
        axes: (3, 3) rows n, t1, t2 in the body's axes.
        faces: (k, 6) of the wrench's cone in the body's axes, `faces @ (force, moment) <= 0`.
    """

    axes: Array
    faces: Array


def sole_of(arms: Array, contacts: Sequence[Contact], ups: Sequence[Array]) -> Sole | None:
    """Return the sole of a body's points; None where they are no flat surface.

    Args:
        arms: (k, 3) points in the body's axes about their mean, m.
        contacts: of these points.
        ups: (3,) normal of the ground in the body's axes, at some poses; it is flat in one of them.

    Raises:
        ProblemError: points of one sole with different friction or sides, or quadratic cones; a
            sole that is flat on the ground in none of the poses.
    """
    if len(arms) < LEAST_CORNERS:
        return None
    _, spread, axes = np.linalg.svd(arms)
    if spread[1] < FLAT * spread[0] or spread[2] > FLAT * spread[0]:
        return None
    first = contacts[0]
    alike = {(each.friction, each.sides, each.cone, tuple(each.normal)) for each in contacts}
    if len(alike) > 1 or first.cone == "quadratic" or any(c.adhesion for c in contacts):
        names = ", ".join(contact.frame for contact in contacts)
        raise ProblemError(
            f"a wrench for the points {names}; expected one normal, friction, number of sides and "
            'pyramid ("inner" or "outer") for all of them, and no adhesion'
        )
    cosines = [float(axes[2] @ up) for up in ups]
    cosine = max(cosines, key=abs)
    if abs(cosine) < LEAST_COSINE:
        angle = np.rad2deg(np.arccos(abs(cosine)))
        raise ProblemError(
            f"the sole of {', '.join(each.frame for each in contacts)} is turned by {angle:.0f}° "
            "from the ground's normal; expected one that is about flat at the initial pose or at "
            "a key frame, which determines the side of the ground"
        )
    n = axes[2] * np.sign(cosine)
    frame = contact_axes(n)
    return Sole(frame, wrench_cone(arms, frame, edges_of(first)))


def edges_of(contact: Contact) -> Array:
    """Return the edges (sides, 3) of a contact's pyramid in (n, t1, t2), normal part 1."""
    angle = np.pi * (2 * np.arange(contact.sides) + 1) / contact.sides
    outer = contact.cone == "outer"
    radius = contact.friction / (np.cos(np.pi / contact.sides) if outer else 1.0)
    return np.column_stack([np.ones(contact.sides), radius * np.cos(angle), radius * np.sin(angle)])


def wrench_cone(arms: Array, axes: Array, edges: Array) -> Array:
    """Return the rows `F (force, moment) <= 0` (k, 6) of forces within pyramids at points.

    Args:
        arms: (k, 3) points, m.
        axes: (3, 3) rows n, t1, t2.
        edges: (sides, 3) of the pyramid in these axes.

    Raises:
        ProblemError: the points do not give wrenches in all directions.
    """
    forces = edges @ axes
    size = float(np.linalg.norm(arms, axis=1).max())
    to_axes = np.kron(np.eye(2), axes)
    to_axes[3:] /= size  # moments as forces
    rays = np.array([np.r_[f, np.cross(r, f)] for r in arms for f in forces]) @ to_axes.T
    try:
        hull = scipy.spatial.ConvexHull(rays[:, 1:])
    except scipy.spatial.QhullError as error:
        raise ProblemError(f"no wrench cone of {len(arms)} points: {error}") from error
    order = np.lexsort(hull.equations.T[::-1])
    rows: list[Array] = []
    for row in hull.equations[order]:
        if not any(np.abs(row - other).max() < SAME_FACE for other in rows):
            rows.append(row)
    faces = np.array(rows)
    of_wrench = np.column_stack([faces[:, -1], faces[:, :-1]]) @ to_axes
    of_wrench[np.abs(of_wrench) < 1e-14 * np.abs(of_wrench).max()] = 0.0
    return np.asarray(of_wrench)
