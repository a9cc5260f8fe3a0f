"""Convex shapes as sums of a box and an ellipsoid.

A convex shape is known by its support, the largest `nᵀ x` of its points x. Of a sum of shapes it is
the sum of theirs, so that one formula serves all:

    h(n) = Σ_i b_i |n_i| + |E n|,

with the half axes b of a box and E of an ellipsoid. A sphere has E = r, a capsule b = (0, 0, l)
besides, a cylinder b = (0, 0, l) and the disc E = (r, r, 0).

A box has faces and a disc is flat: where the direction passes their normals, the nearest point
jumps. With a small `sharpness` s, `|n_i|` becomes `sqrt(n_i² + s²)` and the half axes e of E
`sqrt(e² + s² (r² - e²))`, r the longest: every shape contains its sharp one, is smooth, and reaches
at most s times its `roundable` length beyond it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Geom

Array = NDArray[np.float64]


class Summands(NamedTuple):
    """A convex shape in its own axes.

    Attributes:
        box: (3,) half axes b of a box, m.
        ellipsoid: (3,) half axes E of an ellipsoid, m.
    """

    box: Array
    ellipsoid: Array

    @property
    def roundable(self) -> float:
        """Length whose product with the sharpness bounds what smoothing adds, m."""
        longest = float(np.max(self.ellipsoid))
        flat = longest if np.min(self.ellipsoid) < longest else 0.0
        return float(np.sum(self.box)) + flat


def summands(geom: Geom) -> Summands | None:
    """Return the box and the ellipsoid whose sum a geom is; None where it is no such sum."""
    a, b, c = map(float, geom.size)
    none, along_z = np.zeros(3), np.array([0.0, 0.0, b])
    match geom.kind:
        case "sphere":
            return Summands(none, np.full(3, a))
        case "capsule":
            return Summands(along_z, np.full(3, a))
        case "cylinder":
            return Summands(along_z, np.array([a, a, 0.0]))
        case "ellipsoid":
            return Summands(none, np.array([a, b, c]))
        case "box":
            return Summands(np.array([a, b, c]), none)
    return None
