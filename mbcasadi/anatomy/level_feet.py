"""Feet that lie flat on level ground: the face on which they rest, and the turn to it."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FLAT = 0.05
"""Share of the length of a foot below which its width counts as none."""

THIN = 0.02
"""Distance from the plane on which a foot rests, of its length, within which points are on it."""


def small_turn(R: Array, wanted: Array) -> Array:
    """Return the (3,) turn, rad, about world axes from R to another rotation, if it is small."""
    E = wanted @ R.T
    return 0.5 * np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]])


def levelled(R: Array, points: Array) -> Array:
    """Return the rotation R (3, 3) of a foot turned so that the points (k, 3) on it are level.

    By the shortest turn: the plane becomes level on which they rest, or the line through them.
    """
    points = points[_resting(points)]
    _, spread, axes = np.linalg.svd(points - points.mean(axis=0))
    if spread[0] < 1e-12:
        return R
    if len(spread) > 1 and spread[1] > FLAT * spread[0]:
        now, level = axes[2] * np.sign(axes[2, 2] or 1.0), np.array([0.0, 0.0, 1.0])
    else:
        now = axes[0]
        level = np.array([*now[:2], 0.0]) / np.linalg.norm(now[:2])
    v, c = np.cross(now, level), float(now @ level)
    V = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.asarray((np.eye(3) + V + V @ V / (1 + c)) @ R)


def _resting(points: Array) -> NDArray[np.bool_]:
    """Return which points (k, 3) are on the face of their hull on which they rest, as they lie.

    It is the face below their middle: an arch between heel and toe is above it.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        faces = ConvexHull(points).equations
    except QhullError:  # they are few, or in one plane
        return np.ones(len(points), dtype=bool)
    below = faces[faces[:, 2] < 0]
    middle = points.mean(axis=0)
    heights = -(below[:, :2] @ middle[:2] + below[:, 3]) / below[:, 2]
    face = below[int(np.argmax(heights))]
    length = float(np.ptp(points, axis=0).max())
    return np.asarray(points @ face[:3] + face[3] > -THIN * length)
