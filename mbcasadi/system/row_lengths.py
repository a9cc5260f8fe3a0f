"""Lengths of constraint rows over poses, in given rates."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.system.functions import evaluate
from mbcasadi.system.mechanism import Mechanism

Array = NDArray[np.float64]

VANISHING = 1e-9
"""A row shorter than this share of the longest row of its constraint holds rounding errors only: in
metres beside radians as in millimetres, which are a factor of 1e3."""


def rows_of(system: Mechanism, q: Array, v: Array) -> Array:
    """Return A (nc, nv) at a state, time zero."""
    values: dict[str, ArrayLike] = {"q": q, "v": v, "t": 0.0}
    return np.asarray(evaluate(system.loop_jacobian, values).full())


def typical_row_lengths(
    system: Mechanism, states: tuple[tuple[Array, Array], ...], of_rate: Array
) -> Array:
    """Return (nc,) the root mean square of `|A_i of_rate|` over states.

    Args:
        system: the mechanism.
        states: (q, v) of each.
        of_rate: (nv, nv) from the rates in whose metric the rows are measured to v.
    """
    if not system.nc:
        return np.zeros(0)
    squares = np.mean(
        [np.sum((rows_of(system, q, v) @ of_rate) ** 2, axis=1) for q, v in states], axis=0
    )
    return _without_vanishing(system, np.sqrt(squares))


def _without_vanishing(system: Mechanism, lengths: Array) -> Array:
    """Return the lengths, those of rows that always vanish replaced by the longest beside them."""
    sizes = [equality.size for equality in system.equalities]
    sizes.append(system.nc - sum(sizes))
    longest = np.concatenate(
        [np.full(part.size, part.max(initial=0.0)) for part in np.split(lengths, np.cumsum(sizes))]
    )
    longest[longest == 0] = lengths.max(initial=0.0) or 1.0
    return np.asarray(np.where(lengths > VANISHING * longest, lengths, longest))
