"""Text for directions and forces of a mechanism, by the names of its joints."""

from collections.abc import Sequence

import numpy as np

from mbcasadi.control.regulators.loads import BALANCED
from mbcasadi.control.regulators.operating_point import Array

MOVES = 0.2
"""Share of the largest entry from which on a coordinate counts as moving."""


def largest(names: Sequence[str], left: Array) -> str:
    """Return the largest entries with their names."""
    order = np.argsort(-np.abs(left), kind="stable")
    worst = [i for i in order if abs(left[i]) > MOVES * np.abs(left).max()]
    return ", ".join(f"{names[i]} {left[i]:.3g}" for i in worst)


def values(names: Sequence[str], numbers: Array) -> str:
    """Return the entries with their names, rounding errors as zero."""
    least = BALANCED * np.abs(numbers).max(initial=0.0)
    shown = [f"{n} {x if abs(x) > least else 0:.4g}" for n, x in zip(names, numbers, strict=True)]
    return shorten(shown)


def joined(names: Sequence[str], directions: Array) -> str:
    """Return the names of the coordinates that move along directions (n, k)."""
    share = np.abs(directions).max(axis=1, initial=0.0)
    moving = [n for n, s in zip(names, share, strict=True) if s > MOVES * share.max()]
    return shorten(moving)


def ways(directions: Array) -> str:
    """Return the number of directions as text."""
    count = directions.shape[1]
    return "no direction" if count == 0 else f"{count} direction{'s' * (count > 1)}"


def along(names: Sequence[str], directions: Array) -> str:
    """Return the coordinates that move along them in brackets, nothing where there are none."""
    return f" ({joined(names, directions)})" if directions.shape[1] else ""


MOST_NAMES = 6


def shorten(names: Sequence[str]) -> str:
    """Return the names in one line; of many names the first ones and a count."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
