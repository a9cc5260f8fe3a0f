"""The places of the least entries of a vector, in a fixed number of operations."""

import math

import casadi as ca

from mbcasadi.linalg.loops import loop_function

FAR = 1e30
"""In place of entries that are taken."""


def least_entries(x: ca.MX, count: int) -> ca.MX:
    """Return (count,) the places of the least entries, the least first, of equal ones the first.

    In C entries are kept in blocks with their minima, so that each place costs two blocks.

    Args:
        x: (n,) numbers below 1e30.
        count: at most n.
    """
    n = x.numel()
    block = max(1, math.isqrt(n))

    def body(values: ca.MX) -> list[ca.MX]:
        order, left, places = ca.DM(range(n)), values, []
        for _ in range(count):
            first = n - ca.mmax((left <= ca.mmin(left)) * (n - order))
            left = ca.if_else(order == first, FAR, left)
            places.append(first)
        return [ca.vertcat(*places)]

    f = loop_function(
        "loops_least_entries",
        [ca.Sparsity.dense(n, 1)],
        body,
        sizes=(n, count, block),
        work=n + -(-n // block),
    )
    result: ca.MX = f(ca.densify(ca.vec(x)))
    return result
