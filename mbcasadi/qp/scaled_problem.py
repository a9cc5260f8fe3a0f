"""A least-distance problem as a plugin of CasADi takes it: finite, ordered, of usual size."""

import math
from typing import NamedTuple

import casadi as ca

from mbcasadi.description.qp_stages import (
    LEAST_DISTANCE,
    PLUGIN_PRIMAL_TOLERANCE,
    SMALL_DISTANCE,
    UNBOUNDED,
    ZERO_BOUND,
    ZERO_ROW,
)

LARGEST_SQUARE = 1e300
"""Rows with a sum of squares of this or more count as invalid; the exported C does the same."""

USUAL_LENGTH = 1e3
"""Rows of a length between one over this and this are passed on as they are."""


class ScaledProblem(NamedTuple):
    """The problem in the units of a plugin: rows times `factor`, bounds over the unit of x too.

    Fields: `A` (m, n), `lower`, `upper` (m,); `length` (m,) of the rows, 1 for zero rows; `factor`
    (m,); `unit`, see `_unit`; `posed`, whether a plugin accepts the problem.
    """

    A: ca.MX
    lower: ca.MX
    upper: ca.MX
    length: ca.MX
    factor: ca.MX
    unit: ca.MX
    posed: ca.MX


def scaled_problem(A_qp: ca.MX, lba: ca.MX, uba: ca.MX) -> ScaledProblem:
    """Return a problem that every plugin accepts, and whether it is the given one.

    Bounds that cross by rounding meet in the middle. NaN, numbers whose squares overflow, and
    crossed or wrongly infinite bounds give a problem without rows. DAQP takes very short rows for
    zero, so each row that is short, or long, is scaled by a power of two of its own; rows of zeros
    are scaled as the longest one.
    """
    if not A_qp.shape[0]:
        return ScaledProblem(A_qp, lba, uba, lba, ca.MX(1), ca.MX(1), ca.MX(1))
    length = ca.sqrt(ca.sum2(A_qp**2))
    longest = ca.mmax(length)
    own = ca.if_else(length > ZERO_ROW * longest, length, ca.if_else(longest > 0, longest, 1))
    usual = ca.logic_and(own > 1 / USUAL_LENGTH, own < USUAL_LENGTH)
    factor = ca.if_else(usual, 1, 2 ** -ca.floor(ca.log(own) / math.log(2)))
    lower = ca.if_else(lba > -UNBOUNDED, factor * lba, lba)
    upper = ca.if_else(uba < UNBOUNDED, factor * uba, uba)
    crossing = PLUGIN_PRIMAL_TOLERANCE * (1 + ca.fabs(upper))
    near = ca.logic_and(lower > upper, lower - upper <= crossing)
    middle = (lower + upper) / 2
    lower, upper = ca.if_else(near, middle, lower), ca.if_else(near, middle, upper)
    ordered = ca.logic_and(lower <= upper, ca.logic_and(lba < UNBOUNDED, uba > -UNBOUNDED))
    posed = ca.logic_and(ca.sum1(ordered) == lba.numel(), _is_finite(A_qp))
    length = factor * length
    unit = _unit(length, lower, upper)
    return ScaledProblem(
        ca.if_else(posed, ca.diag(factor) @ A_qp, 0),
        ca.if_else(posed, lower / unit, -ca.inf),
        ca.if_else(posed, upper / unit, ca.inf),
        ca.if_else(length > 0, length, 1),
        factor,
        unit,
        posed,
    )


def _is_number(value: ca.MX) -> ca.MX:
    """Return false for NaN; CasADi takes `value == value` for true."""
    return ca.logic_or(value < 1, value > 0)


def _is_finite(A_qp: ca.MX) -> ca.MX:
    return ca.sumsqr(A_qp) < LARGEST_SQUARE


def contradicts(A_qp: ca.MX, lba: ca.MX, uba: ca.MX) -> ca.MX:
    """Return whether one row alone cannot be met: crossed bounds, or a zero row; not for NaN."""
    lengths = ca.sqrt(ca.sum2(A_qp**2))
    zero = lengths <= ZERO_ROW * ca.mmax(lengths)
    crossed = lba - uba > PLUGIN_PRIMAL_TOLERANCE * (1 + ca.fabs(uba))
    walls = ca.logic_or(lba >= UNBOUNDED, uba <= -UNBOUNDED)
    apart = ca.logic_and(zero, ca.logic_or(lba > ZERO_BOUND, uba < -ZERO_BOUND))
    some = ca.sum1(ca.logic_or(ca.logic_or(crossed, walls), apart)) > 0
    numbers = ca.sum1(ca.logic_and(_is_number(lba), _is_number(uba))) == lba.numel()
    return ca.logic_and(some, ca.logic_and(numbers, _is_finite(A_qp)))


def _unit(length: ca.MX, lower: ca.MX, upper: ca.MX) -> ca.MX:
    """Return the unit of x to which DAQP's tolerance refers; the exported C uses the same.

    The power of two above the largest distance of a row from x = 0; at least 2, unless all
    distances are small.
    """
    present = length > ZERO_ROW * ca.mmax(length)
    distance = ca.fmax(lower, -upper) / ca.if_else(present, length, 1)
    largest = ca.mmax(ca.if_else(present, distance, 0))
    small = ca.logic_and(largest > LEAST_DISTANCE, largest < SMALL_DISTANCE)
    return 2 ** (
        ca.floor(ca.log(ca.if_else(small, largest, ca.fmax(largest, 1))) / math.log(2)) + 1
    )
