"""Few points whose hull, with a ball about each, contains that of a mesh.

The points are vertices of the mesh: of all directions n the one in which their hull misses most of
the mesh, `max nᵀ x` over both, gets its vertex, until what it misses is less than the excess that
is allowed. The ball's radius is then the greatest distance of a vertex from the hull of the points,
a least-squares problem for each. So the shape contains the mesh's hull, and no point of it is
farther from that hull than the radius.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.model.geometry.even_directions import even_directions

Array = NDArray[np.float64]

EXCESS, SHARE = 5e-3, 0.03
"""m, and share of the mesh's largest extent: the smaller of both is what the shape may add."""
DIRECTIONS = 4000
SAMPLED = 0.9
"""Share of the excess at which points suffice, since the directions are samples."""
WHOLE = 1e3
"""Weight of the equation that shares sum to one, where lengths are of order one."""


class MeshPoints(NamedTuple):
    """A mesh's hull from outside.

    Attributes:
        points: (k, 3) m.
        radius: of the ball about each, m: how far the shape reaches beyond the hull at most.
    """

    points: Array
    radius: float


def mesh_points(vertices: Array) -> MeshPoints:
    """Return few points for the vertices (k, 3) of a convex hull."""
    return _mesh_points(np.ascontiguousarray(vertices, float).tobytes())


@lru_cache(maxsize=512)
def _mesh_points(data: bytes) -> MeshPoints:
    vertices = np.frombuffer(data).reshape(-1, 3)
    size = float(np.max(np.ptp(vertices, axis=0)))
    allowed = min(EXCESS, SHARE * size)
    along = even_directions(DIRECTIONS) @ vertices.T
    chosen = list(dict.fromkeys([*vertices.argmax(0).tolist(), *vertices.argmin(0).tolist()]))
    missed = along.max(1) - along[:, chosen].max(1)
    while missed.max() > SAMPLED * allowed:
        chosen.append(int(along[np.argmax(missed)].argmax()))
        missed = np.minimum(missed, along.max(1) - along[:, chosen[-1]])
    missed = _distances(vertices, chosen, size)
    while missed.max() > allowed:
        chosen.append(int(missed.argmax()))
        missed = _distances(vertices, chosen, size)
    return MeshPoints(vertices[chosen], float(missed.max()))


def _distances(vertices: Array, chosen: list[int], size: float) -> Array:
    """Return (k,) distances of vertices from the hull of the chosen ones, at most, m.

    Args:
        vertices: (k, 3) m.
        chosen: indices.
        size: of the mesh, m.
    """
    points = vertices[chosen] / size
    system = np.vstack([points.T, np.full(len(points), WHOLE)])
    found = np.zeros(len(vertices))
    for k in sorted(set(range(len(vertices))) - set(chosen)):
        shares, _ = scipy.optimize.nnls(system, np.r_[vertices[k] / size, WHOLE])
        found[k] = np.linalg.norm(size * (points.T @ shares) / shares.sum() - vertices[k])
    return found
