"""Gaps of one pair of geoms at many poses, as numbers, by the iteration of a tick."""

from functools import cache

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Geom
from mbcasadi.model.geometry.convex_pairs import sharpness_of
from mbcasadi.model.geometry.nearest_normal import nearest_normal, step_functions
from mbcasadi.model.geometry.nearest_pairs import shape_of
from mbcasadi.model.geometry.summands import padded_points

Array = NDArray[np.float64]


def pair_gaps(pair: tuple[Geom, Geom], places: tuple[Array, Array], smoothing: float) -> Array:
    """Return (n,) signed distances as rows of `nearest_rows` have them, m.

    Args:
        pair: two convex geoms, or a plane and a convex one.
        places: (n, 12) p and R, column by column, of each geom.
        smoothing: what rounded edges may take from a gap, m.
    """
    shapes = [shape_of(geom) for geom in pair]
    points = np.vstack(padded_points(shapes))
    sizes = np.concatenate([x for shape in shapes for x in (shape.box, shape.ellipsoid)])
    (p1, R1), (p2, R2) = ((x[:, :3], x[:, 3:].reshape(-1, 3, 3)) for x in places)  # R transposed
    d = np.einsum("nij,nj->ni", R1, p2 - p1)
    Q = np.einsum("nij,nkj->nik", R1, R2)
    function = _gap_fun(points.shape[1], pair[0].kind == "plane").map(len(d))
    n = len(d)
    gaps = function(
        np.tile(sizes[:, None], n),
        np.tile(points, n),
        d.T,
        np.hstack(list(Q)),
        np.full((1, n), sharpness_of(shapes, smoothing)),
    )
    return np.array(gaps).ravel()


@cache
def _gap_fun(count: int, of_plane: bool) -> ca.Function:
    """Return (sizes, points, d, Q, sharpness) → (gap), with so many points of each shape."""
    inputs = [
        ca.MX.sym("sizes", 12),
        ca.MX.sym("points", 8, count),
        ca.MX.sym("d", 3),
        ca.MX.sym("Q", 3, 3),
        ca.MX.sym("sharpness"),
    ]
    n = ca.MX(ca.DM([0, 0, 1])) if of_plane else nearest_normal(count, quick=True)(*inputs)[0]
    value = step_functions(count)[3]
    gap = value(*inputs[:4], n, inputs[4])
    return ca.Function("pair_gap", inputs, [gap])
