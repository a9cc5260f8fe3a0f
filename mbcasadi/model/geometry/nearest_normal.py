"""The iteration of `support_iteration.py` as one Function that all pairs share."""

from functools import cache
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.model.geometry.support_iteration import (
    TINY,
    exact_newton,
    exact_slopes,
    pair_of,
    polished,
    slopes_at,
    smooth_gap,
    step,
)
from mbcasadi.model.geometry.way_out import ways_out


class Effort(NamedTuple):
    """Newton steps.

    Attributes:
        first: from the line of centres.
        second: from other ways out of an overlap, `way_out.py`; 0 for no search.
        plain: with exact slopes, in the end.
    """

    first: int
    second: int
    plain: int


FULL, QUICK = Effort(16, 8, 2), Effort(8, 0, 2)
"""To a sharpness of 1e-8; to one of 1e-3, without a search for other ways out of an overlap."""
FULL_OF_POINTS, QUICK_OF_POINTS = Effort(100, 100, 2), Effort(14, 0, 2)
"""The same where a shape has points."""
SHARPNESS, LATER_SHARPNESS, LAST_SHARPNESS = 1.0, 0.05, 1e-3
"""Sharpness at which they start."""
SAME = 1e-12
"""Difference of gaps, by the length of the pair, that says nothing of which normal is better: a gap
knows its normal to the root of its rounding."""
NO_SLOPE = 1e-30
"""Derivative in place of zero."""


def _sizes(count: int) -> dict[str, tuple[int, int]]:
    """Return the sizes of a pair's numbers, of so many points."""
    return {"sizes": (12, 1), "points": (8, count), "d": (3, 1), "Q": (3, 3)}


def _function(name: str, inputs: list[ca.SX], outputs: list[ca.SX]) -> ca.Function:
    dense = [ca.densify(x) for x in outputs]
    return ca.Function(name, inputs, dense, {"cse": True, "never_inline": True})


@cache
def step_functions(count: int) -> tuple[ca.Function, ...]:
    """Return the parts of the iteration as Functions: start, step, polish, gap, end.

    Args:
        count: of points that each shape has.
    """
    shapes = [ca.SX.sym(name, *size) for name, size in _sizes(count).items()]
    n, sharpness = ca.SX.sym("n", 3), ca.SX.sym("s")
    pair, inputs = pair_of(*shapes), [*shapes, n, sharpness]
    slopes = [ca.SX.sym("slopes", 3) for _ in range(4)]
    equations, inverse = exact_newton(pair, n, sharpness)
    response = equations.B @ inverse @ equations.B.T
    return (
        _function("support_start", inputs, exact_slopes(slopes_at(pair, n, sharpness))),
        _function("support_step", [*inputs, *slopes], step(pair, n, slopes, sharpness)),
        _function("support_polish", inputs, [polished(pair, n, sharpness)]),
        _function("support_gap", inputs, [smooth_gap(pair, n, sharpness)]),
        _function(
            "support_end",
            inputs,
            [response, equations.residual],
        ),
    )


@cache
def nearest_normal(count: int, quick: bool = False) -> ca.Function:
    """Return (sizes, points, d, Q, sharpness) → (n, response, residual) of two shapes.

    The normal n (3,) from the first to the second, in the axes of the first. Where the shapes move,
    and `residual = d - h'(n)` with that n changes by dr, it changes by `response dr`.
    Lengths are in m. Derivatives are zero: they would run through the iteration.

    Args:
        count: of points that each shape has, K.
        quick: fewer steps.
    """
    round_ones, with_points = (QUICK, QUICK_OF_POINTS) if quick else (FULL, FULL_OF_POINTS)
    effort = with_points if count else round_ones
    sizes, points, d, Q = (ca.MX.sym(name, *size) for name, size in _sizes(count).items())
    sharpness = ca.MX.sym("sharpness")
    extents = [ca.mmax(ca.fabs(points[k : k + 3, :])) for k in (0, 4) if count]
    length = ca.sum1(ca.vertcat(sizes, *extents))
    scale = np.tile([1.0, 1.0, 1.0, 0.0], 2)  # the weights of points stay
    weights = ca.DM(np.tile(1 - scale, (count, 1)).T)
    scaled = points * (ca.repmat(ca.DM(scale), 1, count) / length + weights)
    shapes = [sizes / length, scaled, d / length, Q]
    start, follow, polish, value, end = step_functions(count)

    def followed(n: ca.MX, first: float, steps: int) -> ca.MX:
        """Return n after so many steps; the sharpness falls by one factor, and stays for two.

        Where other ways out are searched, the n with the largest gap of all steps is returned.
        """
        seen = [n]
        ratio = ca.fmin(1.0, sharpness / first) ** (1 / (steps - 2))
        now = ca.fmax(first, sharpness)
        slopes = start.call([*shapes, n, now])
        for k in range(steps):
            n, *slopes = follow.call([*shapes, n, now if k < steps - 2 else sharpness, *slopes])
            now = now * ratio
            seen.append(n)
        for _ in range(effort.plain):
            n = polish(*shapes, n, sharpness)
        return best_of([*seen, n]) if effort.second else n

    def best_of(normals: list[ca.MX]) -> ca.MX:
        """Return the last one, or the one with the largest gap if that is larger."""
        best, largest = normals[-1], value(*shapes, normals[-1], sharpness)
        for n in reversed(normals[:-1]):
            gap = value(*shapes, n, sharpness)
            better = gap > largest + SAME
            best, largest = ca.if_else(better, n, best), ca.if_else(better, gap, largest)
        return best

    square = ca.sumsqr(shapes[2])
    apart = square > TINY
    n = ca.if_else(apart, shapes[2] / ca.sqrt(ca.if_else(apart, square, 1.0)), ca.DM([1, 0, 0]))
    n = followed(n, SHARPNESS, effort.first)
    if effort.second:
        others = [followed(way, LATER_SHARPNESS, effort.second) for way in ways_out(*shapes)]
        n = best_of([*others, n])
        n = best_of([followed(n, LAST_SHARPNESS, effort.second), n])
    response, residual = end.call([*shapes, n, sharpness])
    names = ["sizes", "points", "d", "Q", "sharpness"], ["n", "response", "residual"]
    inputs = [sizes, points, d, Q, sharpness]
    outputs = [n, response / length, residual * length]
    options = {"never_inline": True}
    undifferentiated = ca.Function(
        "nearest_normal", inputs, outputs, *names, options | {"is_diff_in": [False] * 5}
    )
    # Of a call without any derivative, CasADi 3.8 takes NaN: so there is one that rounds away.
    nothing = NO_SLOPE * sum(ca.sum1(ca.vec(x)) for x in inputs if x.numel())
    outputs = [x + nothing for x in undifferentiated.call(inputs)]
    return ca.Function("fixed_normal", inputs, outputs, *names, options)
