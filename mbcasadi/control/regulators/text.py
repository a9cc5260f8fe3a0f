"""Text for directions and forces of a mechanism, by the names of its joints."""

from collections.abc import Sequence

import numpy as np

from mbcasadi.control.regulators.loads import BALANCED
from mbcasadi.control.regulators.operating_point import Array

MOVES = 0.2
"""Share of the largest entry from which on a coordinate counts as moving."""


def largest_entries(names: Sequence[str], entries: Array) -> str:
    """Return the largest entries with their names."""
    order = np.argsort(-np.abs(entries), kind="stable")
    worst = [i for i in order if abs(entries[i]) > MOVES * np.abs(entries).max()]
    return ", ".join(f"{names[i]} {entries[i]:.3g}" for i in worst)


def named_values(names: Sequence[str], numbers: Array) -> str:
    """Return the entries with their names, rounding errors as zero."""
    least = BALANCED * np.abs(numbers).max(initial=0.0)
    entries = [f"{n} {x if abs(x) > least else 0:.4g}" for n, x in zip(names, numbers, strict=True)]
    return shorten(entries)


def moving_names(names: Sequence[str], directions: Array) -> str:
    """Return the names of the coordinates that move along directions (n, k)."""
    share = np.abs(directions).max(axis=1, initial=0.0)
    named = [n for n, s in zip(names, share, strict=True) if s > MOVES * share.max()]
    return shorten(named)


def direction_text(names: Sequence[str], directions: Array) -> str:
    """Return the number of directions, and the coordinates that move along them in brackets."""
    count = directions.shape[1]
    if count == 0:
        return "no direction"
    return f"{count} direction{'s' * (count > 1)} ({moving_names(names, directions)})"


MOST_NAMES = 6


def shorten(names: Sequence[str]) -> str:
    """Return the names in one line; of many names the first ones and a count."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
