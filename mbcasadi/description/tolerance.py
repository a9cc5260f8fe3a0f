"""Tolerances that know what they are in single precision.

A number in a Function cannot say what it is for: `1e-10` may be a rank tolerance, which float
cannot decide, or an inertia, which float resolves well. So tolerances carry a mark in the last 32
bits of their mantissa, a relative change of at most 2⁻²⁰: 24 bits that say "a tolerance", and 8
bits with the power of two by which it is larger or smaller in float. The mark survives in
Functions, their copies, serialisation and C, and `codegen` writes float's value where the C is of
floats. Any other number has these bits with a probability of 2⁻²⁴.
"""

import math
import struct
from typing import overload

POWER = math.log(2.0**-23) / math.log(2.0**-52)
"""A tolerance `eps^k` of double is `eps^k` of float: the same power of another epsilon."""

LARGEST = 1e-3
"""In float a tolerance is not larger than this, unless it is in double: what differs by a
thousandth differs in float too."""

MARK = 0xB5D3A7
"""The 24 bits."""

BIAS = 50
"""Of the power of two, so that it is not negative: from -50 to 205."""

WEIGHT = 0xB5D3
"""The last 16 bits of a weight with a value of its own in float."""

_singles: dict[float, float] = {}

MOST_SHIFT = 255
_LAST = 0xFFFFFFFF


class Tolerance(float):
    """A marked number; products with numbers and powers are marked too."""

    __slots__ = ()

    @property
    def single(self) -> float:
        """Its value in float."""
        return single_value(self)

    def __pow__(self, power: float) -> "Tolerance":  # type: ignore[override]
        return marked(float(self) ** power, self.single**power)

    @overload
    def __mul__(self, other: int) -> "Tolerance": ...
    @overload
    def __mul__(self, other: float) -> "Tolerance": ...
    def __mul__(self, other: float) -> "Tolerance":
        if not isinstance(other, float | int):
            return NotImplemented
        return marked(float(self) * other, self.single * other)

    __rmul__ = __mul__


def tolerance(value: float) -> Tolerance:
    """Return a tolerance of double as a marked number; one that is marked stays as it is.

    Args:
        value: a relative size below which double's rounding errors are not told from zero.
    """
    if isinstance(value, Tolerance):
        return value
    single = max(value, min(value**POWER, LARGEST)) if 0.0 < value < math.inf else value
    return marked(value, single)


def marked(value: float, single: float) -> Tolerance:
    """Return `value`, within 2⁻¹⁹ of it, marked as `single`, within a factor √2, in float."""
    if not (0.0 < value < math.inf and 0.0 < single < math.inf):
        return Tolerance(value)  # no tolerance: refused where it is used
    ratio = single / value
    shift = min(max(round(math.log2(ratio)) + BIAS, 0), MOST_SHIFT)
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    bits = (bits & ~_LAST) | (MARK << 8) | shift
    return Tolerance(struct.unpack("<d", struct.pack("<Q", bits))[0])


def with_single(value: float, single: float) -> float:
    """Return `value`, within 2⁻³⁶ of it, whose value in float is `single`; kept in this process.

    For weights, which are no tolerances: all their digits count. The last 16 bits tell it from
    numbers that somebody wrote.
    """
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    own = float(struct.unpack("<d", struct.pack("<Q", (bits & ~0xFFFF) | WEIGHT))[0])
    _singles[own] = single
    return own


def single_value(value: float) -> float:
    """Return what a number is in float: itself, unless it is marked."""
    if value in _singles:
        return _singles[value]
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    if (bits & _LAST) >> 8 != MARK:
        return float(value)
    return math.ldexp(value, (bits & 0xFF) - BIAS)
