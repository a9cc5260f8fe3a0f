"""The iteration of `support_iteration.py` as one Function that all pairs share."""

from functools import cache
from typing import NamedTuple

import casadi as ca

from mbcasadi.linalg.side_by_side import side_by_side
from mbcasadi.model.geometry.support_iteration import (
    TINY,
    Pair,
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


def _function(
    name: str, inputs: list[ca.SX], outputs: list[ca.SX], lanes: int | None
) -> ca.Function:
    dense = [ca.densify(x) for x in outputs]
    if lanes is None:
        return ca.Function(name, inputs, dense, {"cse": True, "never_inline": True})
    return side_by_side(ca.Function(name, inputs, dense, {"cse": True}), lanes)


@cache
def step_functions(count: int, lanes: int | None = None) -> tuple[ca.Function, ...]:
    """Return the parts of the iteration as Functions: start, step, polish, gap, end, scaled.

    Args:
        count: of points that each shape has.
        lanes: pairs, as in `side_by_side`; None for one in the usual shapes.
    """
    shapes = [ca.SX.sym(name, *size) for name, size in _sizes(count).items()]
    n, sharpness = ca.SX.sym("n", 3), ca.SX.sym("s")
    pair, inputs = pair_of(*shapes), [*shapes, n, sharpness]
    slopes = [ca.SX.sym("slopes", 3) for _ in range(4)]
    equations, inverse = exact_newton(pair, n, sharpness)
    response = equations.B @ inverse @ equations.B.T
    later = [*inputs, *slopes]
    return (
        _function(
            f"support_start_{count}", inputs, exact_slopes(slopes_at(pair, n, sharpness)), lanes
        ),
        _function(f"support_step_{count}", later, step(pair, n, slopes, sharpness), lanes),
        _function(f"support_polish_{count}", inputs, [polished(pair, n, sharpness)], lanes),
        _function(f"support_gap_{count}", inputs, [smooth_gap(pair, n, sharpness)], lanes),
        _function(f"support_end_{count}", inputs, [response, equations.residual], lanes),
        _function(f"support_scaled_{count}", shapes[:3], _scaled(pair, shapes), lanes),
    )


def _scaled(pair: Pair, shapes: list[ca.SX]) -> list[ca.SX]:
    """Return sizes, points and d by the length of the pair, the line of centres, and the length.

    The weights of points stay.
    """
    sizes, points, d = shapes[:3]
    length, square = pair.length, ca.sumsqr(d)
    rows = [points[k, :] / (1.0 if k in (3, 7) else length) for k in range(8)]
    apart = square > TINY * length**2
    n = ca.if_else(apart, d / ca.sqrt(ca.if_else(apart, square, 1.0)), ca.SX([1, 0, 0]))
    return [sizes / length, ca.vertcat(*rows), d / length, n, length]


@cache
def nearest_normal(count: int, quick: bool = False, lanes: int | None = None) -> ca.Function:
    """Return (sizes, points, d, Q, sharpness) → (n, response, residual) of two shapes.

    The normal n (3,) from the first to the second, in the axes of the first. Where the shapes move,
    and `residual = d - h'(n)` with that n changes by dr, it changes by `response dr`.
    Lengths are in m. Derivatives are zero: they would run through the iteration.

    Args:
        count: of points that each shape has, K.
        quick: fewer steps.
        lanes: pairs, as in `side_by_side`; None for one in the usual shapes.
    """
    round_ones, with_points = (QUICK, QUICK_OF_POINTS) if quick else (FULL, FULL_OF_POINTS)
    effort = with_points if count else round_ones
    shapes_of = {name: (n, m) for name, (n, m) in _sizes(count).items()}
    if lanes is not None:
        shapes_of = {name: (lanes, n * m) for name, (n, m) in shapes_of.items()}
    sizes, points, d, Q = (ca.MX.sym(name, *size) for name, size in shapes_of.items())
    sharpness = ca.MX.sym("sharpness", lanes or 1)
    start, follow, polish, value, end, scale = step_functions(count, lanes)
    *scaled, first, length = scale.call([sizes, points, d])
    shapes = [*scaled, Q]

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

    n = followed(first, SHARPNESS, effort.first)
    if effort.second:
        others = [followed(way, LATER_SHARPNESS, effort.second) for way in ways_out(*shapes)]
        n = best_of([*others, n])
        n = best_of([followed(n, LAST_SHARPNESS, effort.second), n])
    response, residual = end.call([*shapes, n, sharpness])
    names = ["sizes", "points", "d", "Q", "sharpness"], ["n", "response", "residual"]
    inputs = [sizes, points, d, Q, sharpness]
    if lanes is not None:
        length = ca.repmat(length, 1, 9)
    outputs = [n, response / length, residual * length[:, : residual.shape[1]]]
    options = {"never_inline": True}
    undifferentiated = ca.Function(
        "nearest_normal", inputs, outputs, *names, options | {"is_diff_in": [False] * 5}
    )
    # Of a call without any derivative, CasADi 3.8 takes NaN: so there is one that rounds away.
    nothing = NO_SLOPE * sum(ca.sum1(ca.vec(x)) for x in inputs if x.numel())
    outputs = [x + nothing for x in undifferentiated.call(inputs)]
    return ca.Function("fixed_normal", inputs, outputs, *names, options)
