"""Convex shapes as sums of a box, an ellipsoid and the hull of some points.

A convex shape is known by its support, the largest `nᵀ x` of its points x. Of a sum of shapes it is
the sum of theirs, so that one formula serves all:

    h(n) = Σ_i b_i |n_i| + |E n| + max_k nᵀ x_k,

with the half axes b of a box, E of an ellipsoid, and points x. A sphere has E = r, a capsule
b = (0, 0, l) besides, a cylinder b = (0, 0, l) and the disc E = (r, r, 0), a mesh few points with a
ball, `mesh_points.py`.

A box has faces and a disc is flat: where the direction passes their normals, the nearest point
jumps. With a small `sharpness` s, `|n_i|` becomes `sqrt(n_i² + s²)`, the half axes e of E
`sqrt(e² + s² (r² - e²))`, r the longest, and the maximum over K points

    s L log Σ_k exp(nᵀ x_k / (s L)),

L the length of the pair of shapes: every shape contains its sharp one, is smooth, and reaches at
most s times its `roundable` length beyond it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Geom
from mbcasadi.model.geometry.mesh_points import mesh_points

Array = NDArray[np.float64]


class Summands(NamedTuple):
    """A convex shape in its own axes.

    Attributes:
        box: (3,) half axes b of a box, m.
        ellipsoid: (3,) half axes E of an ellipsoid, m.
        points: (3, K) points of a hull, m; (3, 0) for none.
    """

    box: Array
    ellipsoid: Array
    points: Array

    @property
    def length(self) -> float:
        """Its part of the length L of a pair, m."""
        return float(
            np.sum(self.box) + np.sum(self.ellipsoid) + np.max(np.abs(self.points), initial=0)
        )

    def roundable(self, length: float) -> float:
        """Return the length whose product with the sharpness bounds what smoothing adds, m.

        Args:
            length: L of the pair, m.
        """
        longest = float(np.max(self.ellipsoid))
        flat = longest if np.min(self.ellipsoid) < longest else 0.0
        return float(np.sum(self.box)) + flat + length * float(np.log(max(self.points.shape[1], 1)))


def summands(geom: Geom) -> Summands | None:
    """Return the summands of a geom; None where it is no such sum."""
    a, b, c = map(float, geom.size)
    none, along_z = np.zeros(3), np.array([0.0, 0.0, b])
    no_points = np.zeros((3, 0))
    match geom.kind:
        case "sphere":
            return Summands(none, np.full(3, a), no_points)
        case "capsule":
            return Summands(along_z, np.full(3, a), no_points)
        case "cylinder":
            return Summands(along_z, np.array([a, a, 0.0]), no_points)
        case "ellipsoid":
            return Summands(none, np.array([a, b, c]), no_points)
        case "box":
            return Summands(np.array([a, b, c]), none, no_points)
        case "mesh" if len(geom.points):
            points, radius = mesh_points(geom.points)
            return Summands(none, np.full(3, radius), points.T)
    return None


def padded_points(shapes: Sequence[Summands]) -> list[Array]:
    """Return (4, K) points of each shape with their weights, as many as the shape with most has.

    The weight is one, and zero of points that fill up. A shape without points has one at its
    centre, which adds nothing to it. K is zero where no shape has points.
    """
    count = max(shape.points.shape[1] for shape in shapes)
    found = []
    for shape in shapes:
        own = shape.points if shape.points.shape[1] else np.zeros((3, 1))
        more = max(count - own.shape[1], 0)
        weights = np.repeat([1.0, 0.0], [own.shape[1], more])
        points = np.vstack([np.pad(own, ((0, 0), (0, more)), mode="edge"), weights])
        found.append(points[:, :count])
    return found
