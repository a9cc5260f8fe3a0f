"""The input guard: bad inputs never reach the equations, and outputs are bounded.

Comparisons are written so that NaN fails them, and choices as `condition ? a : b`, so that a NaN
that is not chosen has no effect.
"""

from collections.abc import Iterable, Mapping, Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.linalg.symbols import Sym

LARGEST_INPUT = 1e12
"""Inputs whose absolute values add up to more than this count as bad."""

LARGEST_CONTROL = 1e300
"""Controls whose absolute value is larger count as infinite. Their units are the user's: the torque
of a crane in g mm²/s² is 1e16."""

LEAST_QUAT2 = 0.25
"""Quaternions with a smaller squared length count as bad; others are normalised, as in MuJoCo."""

SATURATION_TOL = 1e-9
"""Relative difference of u and its limited value from which it counts as saturated."""

MASK_ON = 0.5
"""Entries of the mask above this are on."""


def input_validity(values: Iterable[ca.SX], q: ca.SX, quaternions: Sequence[int]) -> ca.SX:
    """Return whether inputs are finite, of bounded size, and their quaternions not degenerate.

    Args:
        values: all inputs to check.
        q: (nq,) configuration.
        quaternions: first row in q of each quaternion.
    """
    size = ca.SX(0)
    for value in values:
        size = size + ca.sum1(ca.fabs(value))
    valid = size <= LARGEST_INPUT
    for place in quaternions:
        valid = ca.logic_and(valid, ca.sumsqr(q[place : place + 4]) >= LEAST_QUAT2)
    return valid


def is_within(values: Sym, lower: Sequence[float], upper: Sequence[float]) -> Sym:
    """Return whether every entry is inside its bounds; false for NaN."""
    inside = ca.logic_and(values >= ca.DM(lower), values <= ca.DM(upper))
    return ca.sum1(inside) == values.numel()


def replace_invalid(
    valid: ca.SX, values: Mapping[str, ca.SX], nominal: Mapping[str, ca.DM]
) -> dict[str, ca.SX]:
    """Return the inputs where they are valid, their nominal values elsewhere."""
    return {
        name: ca.densify(ca.if_else(valid, value, nominal[name])) if value.numel() else value
        for name, value in values.items()
    }


def normalise_quaternions(q: ca.SX, quaternions: Sequence[int]) -> ca.SX:
    """Return q with unit quaternions."""
    unit = ca.SX(q)
    for place in quaternions:
        quat = unit[place : place + 4]
        unit[place : place + 4] = quat / ca.sqrt(ca.sumsqr(quat))
    return unit


def active_signs(z: Sym) -> Sym:
    """Return -1, 0 or 1 for each entry of an active set, whatever it holds."""
    return (z > MASK_ON) - (z < -MASK_ON)


def clamp(u: Sym, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> Sym:
    """Return u, finite and inside its limits, whatever it holds; NaN and infinity become zero."""
    entries = []
    for i in range(u.numel()):
        entry = ca.if_else(ca.fabs(u[i]) <= LARGEST_CONTROL, u[i], 0)
        if np.isfinite(upper[i]):
            entry = ca.fmin(entry, upper[i])
        if np.isfinite(lower[i]):
            entry = ca.fmax(entry, lower[i])
        entries.append(entry)
    return ca.vertcat(u[:0, 0], *entries)


def is_saturated(u: Sym, limited: Sym) -> Sym:
    """Return whether u lay outside its limits, from u and its clamped value; false for NaN."""
    excess = ca.sum1(ca.fabs(u - limited))
    return excess > SATURATION_TOL * (1 + ca.sum1(ca.fabs(limited)))
