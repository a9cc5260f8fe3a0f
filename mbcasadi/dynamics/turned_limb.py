"""The rows of a limb after reflections of its own columns, the strongest row first.

Row i has a shared part, parts along the directions of the rows before it, and one new direction.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.linalg.householder import one_hot, reflector
from mbcasadi.linalg.limbs import Limb

LEAST_SCORE = 1e-40
"""Score of a row that is left without an own remainder: every step takes one row."""


class TurnedLimb(NamedTuple):
    """A limb after the reflections of its own columns.

    Fields: `columns` of it; `Q` (n, n) orthogonal; `rows` by strength.
    """

    columns: tuple[int, ...]
    Q: ca.SX
    rows: list["LimbRow"]


class LimbRow(NamedTuple):
    """A row after the reflections.

    Fields: `place` (m, 1) a one at the row of G; `shared` (1, nb) and `own` (1, k) parts, the last
    of `own` along its new direction, if `new`; `threshold2` (1, 1).
    """

    place: ca.SX
    shared: ca.SX
    own: ca.SX
    new: bool
    threshold2: ca.SX

    @property
    def sigma(self) -> ca.SX:
        """The part of the new direction, zero if there is none."""
        return self.own[-1] if self.new else ca.SX(1, 1)


def turned_limb(G: ca.SX, limb: Limb, shared: list[int], threshold2: ca.SX) -> TurnedLimb:
    """Return the rows of one limb after reflections of its own columns, strongest first."""
    places, columns = list(limb.rows), list(limb.columns)
    m, n = len(places), len(columns)
    # The reflections of the rows, and below the product of them.
    own = ca.vertcat(ca.densify(G[places, columns]), ca.SX.eye(n))
    limits, left, rows = threshold2[places], ca.SX.ones(m), []
    for k in range(m):
        e = left
        if k < m - 1:
            scores = ca.densify(ca.sum2(own[:m, k:] ** 2)) / limits
            e = one_hot(left * (scores + LEAST_SCORE))
            left = left - e
        if k < n:
            own = _reflected(own, (e.T @ own[:m, k:]).T)
        of_all = ca.SX(G.shape[0], 1)
        of_all[places] = e
        part = e.T @ own[:m, : min(k + 1, n)]
        rows.append(LimbRow(of_all, e.T @ G[places, shared], part, k < n, e.T @ limits))
    return TurnedLimb(limb.columns, own[m:, :], rows)


def _reflected(own: ca.SX, x: ca.SX) -> ca.SX:
    """Return the matrix with its last columns reflected such that x lies along their first."""
    width = x.numel()
    if width == 1:
        return own
    head = ca.SX(ca.DM.eye(width)[:, 0])
    u, beta = reflector(x, head, ca.sumsqr(x) > 0)
    first = own.shape[1] - width
    tail = own[:, first:]
    return ca.horzcat(own[:, :first], tail - (tail @ u) @ (beta * u).T)
