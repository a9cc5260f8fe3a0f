"""Pairs of convex shapes without a closed formula, by the iteration of `support_iteration.py`.

The iteration gives the normal n at the present poses. Expressions have the derivatives of what it
solves, the implicit rule, and none of its steps: n changes by `response (r - r₀)`, where
`r = d - h'(n₀)` depends on the poses. As the gap is a maximum over n, its derivatives by this
normal are exact to the second, those of normal and points to the first.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np

from mbcasadi.model.geometry.nearest_normal import nearest_normal
from mbcasadi.model.geometry.summands import Summands, padded_points, summands
from mbcasadi.model.geometry.support_iteration import (
    pair_of,
    residual_at,
    slopes_at,
    smooth_gap,
    surface_point,
)
from mbcasadi.model.geometry.witness import Placed, Witness

SHARPEST, BLUNTEST = 1e-8, 0.3
"""Bounds of the sharpness: with the least one the gap is exact to 1e-8 of the shapes' length."""


def sharpness_of(shapes: Sequence[Summands], smoothing: float) -> float:
    """Return the sharpness with which two shapes reach at most `smoothing` beyond themselves.

    Args:
        shapes: both.
        smoothing: length, m.
    """
    length = sum(shape.length for shape in shapes)
    roundable = sum(shape.roundable(length) for shape in shapes)
    limited = roundable + smoothing / BLUNTEST
    return max(smoothing / limited, SHARPEST) if limited else SHARPEST


def convex_witness(first: Placed, second: Placed, smoothing: float) -> Witness:
    """Return the contact of two convex geoms.

    Args:
        first, second: the geoms, sums of a box, an ellipsoid and points.
        smoothing: what rounding their edges may take from the gap, m.
    """
    shapes = [x for x in (summands(first.geom), summands(second.geom)) if x is not None]
    sharpness = ca.SX(sharpness_of(shapes, smoothing))
    d, Q = first.R.T @ (second.p - first.p), first.R.T @ second.R
    sizes = ca.SX(ca.DM(np.concatenate([part for x in shapes for part in (x.box, x.ellipsoid)])))
    points = ca.SX(ca.DM(np.vstack(padded_points(shapes))))
    pair = pair_of(sizes, points, d, Q)
    fixed, response, residual = nearest_normal(points.shape[1])(sizes, points, d, Q, sharpness)
    n = fixed + response @ (residual_at(pair, fixed, sharpness) - residual)
    n = n / ca.norm_2(n)
    gap = smooth_gap(pair, n, sharpness)
    at, _ = slopes_at(pair, n, sharpness)
    surface = first.p + first.R @ surface_point(pair.boxes[0], at, sharpness)
    normal = first.R @ n
    return Witness(gap, surface + normal * (gap / 2), normal)
