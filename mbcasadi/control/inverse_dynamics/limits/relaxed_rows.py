"""Which soft rows are violated, and by how much."""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.control.inverse_dynamics.inequalities import Rows
from mbcasadi.control.inverse_dynamics.limits.soft_limits import SoftRow
from mbcasadi.description.status import FLAG_BITS

RELAXED_SHARE = 1e-3
"""A row counts as relaxed where it is violated by more than this share of what is in it."""


def excess(rows: Rows, value: ca.SX, w: ca.SX, soft: Sequence[SoftRow]) -> ca.SX:
    """Return by how much soft rows exceed their bounds (k,): above positive, below negative.

    Args:
        rows: all rows, with slack.
        value: their middles.
        w: unknowns beside p; the slack comes first.
        soft: the soft rows.
    """
    parts = []
    for j, each in enumerate(soft):
        own = value[each.row, 0] - rows.C_w[each.row, j] * w[j, 0]
        upper, lower = rows.upper[each.row, 0], rows.lower[each.row, 0]
        if each.slack >= 0:
            start = rows.lower[each.slack, 0]
            upper, lower = upper + start, rows.lower[each.other, 0] - start
        parts.append(ca.fmax(own - upper, 0) - ca.fmax(lower - own, 0))
    return ca.vertcat(*parts)


def words(bits: ca.SX) -> ca.SX:
    """Return truth values (k,) as words of 32 bits, the first one the lowest bit."""
    k = bits.numel()
    groups = [range(first, min(first + FLAG_BITS, k)) for first in range(0, k, FLAG_BITS)]
    return ca.vertcat(*(sum(2.0**n * bits[i] for n, i in enumerate(each)) for each in groups))


def word_names(k: int) -> tuple[str, ...]:
    """Return names of these words."""
    ends = [(first, min(first + FLAG_BITS, k) - 1) for first in range(0, k, FLAG_BITS)]
    return tuple(f"bits of {first} to {last}" for first, last in ends)
