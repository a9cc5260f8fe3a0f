"""The iteration of `support_iteration.py` as one Function that all pairs share."""

from functools import cache
from typing import NamedTuple

import casadi as ca

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


class Effort(NamedTuple):
    """Newton steps.

    Attributes:
        first: from the line of centres.
        second: from the best direction; 0 for no second start.
        plain: with exact slopes, in the end.
    """

    first: int
    second: int
    plain: int


FULL, QUICK = Effort(16, 8, 2), Effort(8, 0, 2)
"""To a sharpness of 1e-8; to one of 1e-3, without a search for other ways out of an overlap."""
SHARPNESS, LATER_SHARPNESS = 1.0, 0.05
"""Sharpness at which they start."""
NO_SLOPE = 1e-30
"""Derivative in place of zero."""


def _best(pair: Pair, n: ca.SX) -> ca.SX:
    """Return the best direction: n, an axis of a shape, or the product of two axes."""
    none = ca.SX(0)
    axes = ca.SX.eye(3)
    own = [axes[:, i] for i in range(3)]
    other = [pair.Q[:, i] for i in range(3)]
    products = [ca.cross(a, b) for a in own for b in other]
    products = [x / ca.sqrt(ca.sumsqr(x) + TINY) for x in products]
    best, value = n, smooth_gap(pair, n, none)
    for x in own + other + products:
        x = x * ca.if_else(ca.dot(x, pair.d) >= 0, 1.0, -1.0)
        x = ca.if_else(ca.sumsqr(x) > 0.5, x, n)
        new = smooth_gap(pair, x, none)
        better = new > value
        best, value = ca.if_else(better, x, best), ca.fmax(value, new)
    return best


def _symbols() -> dict[str, ca.SX]:
    sizes = {"sizes": 12, "d": 3}
    found = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    return found | {"Q": ca.SX.sym("Q", 3, 3), "n": ca.SX.sym("n", 3)}


def _function(name: str, inputs: list[ca.SX], outputs: list[ca.SX]) -> ca.Function:
    dense = [ca.densify(x) for x in outputs]
    return ca.Function(name, inputs, dense, {"cse": True, "never_inline": True})


@cache
def step_functions() -> tuple[ca.Function, ...]:
    """Return the parts of the iteration as Functions: start, step, best direction, polish, end."""
    given = _symbols()
    pair, n, sharpness = pair_of(given["sizes"], given["d"], given["Q"]), given["n"], ca.SX.sym("s")
    inputs = [*given.values(), sharpness]
    slopes = [ca.SX.sym("slopes", 3) for _ in range(4)]
    equations, inverse = exact_newton(pair, n, sharpness)
    response = equations.B @ inverse @ equations.B.T
    return (
        _function("support_start", inputs, exact_slopes(slopes_at(pair, n, sharpness))),
        _function("support_step", [*inputs, *slopes], step(pair, n, slopes, sharpness)),
        _function("support_best", inputs[:-1], [_best(pair, n)]),
        _function("support_polish", inputs, [polished(pair, n, sharpness)]),
        _function(
            "support_end",
            inputs,
            [smooth_gap(pair, n, sharpness), response, equations.residual],
        ),
    )


@cache
def nearest_normal(effort: Effort = FULL) -> ca.Function:
    """Return (sizes, d, Q, sharpness) → (n, response, residual) of two shapes.

    The normal n (3,) from the first to the second, in the axes of the first. Where the shapes move,
    and `residual = d - h'(n)` with that n changes by dr, it changes by `response dr`.
    Lengths are in m. Derivatives are zero: they would run through the iteration.
    """
    sizes, d, Q = (
        ca.MX.sym(name, *size) for name, size in (("sizes", (12,)), ("d", (3,)), ("Q", (3, 3)))
    )
    sharpness = ca.MX.sym("sharpness")
    length = ca.sum1(sizes)
    shapes = [sizes / length, d / length, Q]
    start, follow, best, polish, end = step_functions()

    def followed(n: ca.MX, first: float, steps: int) -> ca.MX:
        """Return n after so many steps; the sharpness falls by one factor, and stays for two."""
        ratio = ca.fmin(1.0, sharpness / first) ** (1 / (steps - 2))
        now = ca.fmax(first, sharpness)
        slopes = start.call([*shapes, n, now])
        for k in range(steps):
            n, *slopes = follow.call([*shapes, n, now if k < steps - 2 else sharpness, *slopes])
            now = now * ratio
        for _ in range(effort.plain):
            n = polish(*shapes, n, sharpness)
        return n

    square = ca.sumsqr(shapes[1])
    apart = square > TINY
    n = ca.if_else(apart, shapes[1] / ca.sqrt(ca.if_else(apart, square, 1.0)), ca.DM([1, 0, 0]))
    n = followed(n, SHARPNESS, effort.first)
    gap, response, residual = end.call([*shapes, n, sharpness])
    if effort.second:
        other = followed(best(*shapes, n), LATER_SHARPNESS, effort.second)
        its_gap, *rest = end.call([*shapes, other, sharpness])
        n, response, residual = (
            ca.if_else(its_gap > gap, new, old)
            for new, old in zip((other, *rest), (n, response, residual), strict=True)
        )
    names = ["sizes", "d", "Q", "sharpness"], ["n", "response", "residual"]
    inputs, outputs = [sizes, d, Q, sharpness], [n, response / length, residual * length]
    options = {"never_inline": True}
    undifferentiated = ca.Function(
        "nearest_normal", inputs, outputs, *names, options | {"is_diff_in": [False] * 4}
    )
    # Of a call without any derivative, CasADi 3.8 takes NaN: so there is one that rounds away.
    nothing = NO_SLOPE * sum(ca.sum1(ca.vec(x)) for x in inputs)
    outputs = [x + nothing for x in undifferentiated.call(inputs)]
    return ca.Function("fixed_normal", inputs, outputs, *names, options)
