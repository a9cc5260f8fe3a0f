"""The input guard: bad inputs never reach the equations, and outputs are bounded.

Comparisons are written so that NaN fails them, and choices as `condition ? a : b`, so that a NaN
that is not chosen has no effect.
"""

from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.tolerance import marked, tolerance
from mbcasadi.linalg.symbols import Sym
from mbcasadi.spatial.quaternions import LEAST_MEASURED2

Array = NDArray[np.float64]

LARGEST_STATE = marked(1e12, 2e3)
"""A measured q and v count as bad where their absolute values, each in the unit of its coordinate
(`system.coordinates.state_sizes`) and s, add up to more than this. A double resolves 1e-16 of
itself: farther away the shape of a mechanism is known to less than 1e-4 of its size. In these units
nothing overflows: terms are of degree 5 in (q, v) at most, and their squares reach 1e120. In the
user's units the bound would be a thousand times nearer in millimetres than in metres. In float it
is 2e3: the shape is known to 1e-4 of its size there too."""

LARGEST_INPUT = marked(1e20, 4e9)
"""Other inputs count as bad where an absolute value is more than this: references, gains,
forces, states of a law. Their units are the user's.

It refuses nothing sensible: 1e9 N m, a hundred times the torque of the largest machines, are
1e18 g mm²/s². It lets no overflow through: terms are products of three of them at most, two gains
and a reference for example, and the square of one is 1e120; norms leave 1e180 to the numbers of a
model. What overflows all the same is not finite, and a comparison with that is false. The number
stays below `UNBOUNDED`, from which on a bound is none. In float it is 4e9: a force limit that means
none, 1e9 N, is below it."""

LARGEST_SUM = marked(1e20, 1e12)
"""Other inputs whose absolute values add up to more than this count as bad too. In float, where an
entry is bounded by little more than limits of 1e9 N, it leaves room for all of these."""

LARGEST_CONTROL = 1e300
"""Controls whose absolute value is larger count as infinite. Their units are the user's: the torque
of a crane in g mm²/s² is 1e16."""

SATURATION_TOL = tolerance(1e-9)
"""Relative difference of u and its limited value from which it counts as saturated."""

MASK_ON = 0.5
"""Entries of the mask above this are on."""


def is_bounded(*values: Sym) -> Sym:
    """Return whether columns have no NaN, and entries and their sum are within their limits."""
    sizes = ca.fabs(ca.vertcat(*values))
    each = ca.sum1(sizes <= LARGEST_INPUT) == sizes.numel()
    return ca.logic_and(each, ca.sum1(sizes) <= LARGEST_SUM)


def state_validity(state: tuple[Sym, Sym], sizes: tuple[Array, Array]) -> Sym:
    """Return whether a measured state is finite and at most `LARGEST_STATE` away.

    Args:
        state: q (nq,), v (nv,).
        sizes: the unit of each entry.
    """
    shares = (x / ca.DM(size) for x, size in zip(state, sizes, strict=True))
    return ca.sum1(ca.fabs(ca.vertcat(*shares))) <= LARGEST_STATE


def quaternion_validity(q: ca.SX, quaternions: Sequence[int]) -> ca.SX:
    """Return whether no quaternion is degenerate.

    Args:
        q: (nq,) configuration.
        quaternions: first row in q of each quaternion.
    """
    valid = ca.SX(1)
    for place in quaternions:
        valid = ca.logic_and(valid, ca.sumsqr(q[place : place + 4]) >= LEAST_MEASURED2)
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
