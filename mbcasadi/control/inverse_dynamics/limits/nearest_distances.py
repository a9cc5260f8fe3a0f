"""Distances of the nearest pairs, from candidates to rows of gap, J and J̇ v.

Their expressions hold a call of one Function, which finds the pairs. In C it stands before the
scalar terms of the tick: so the problem has symbols in their place, `Late`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from mbcasadi.linalg.scalars import Late
from mbcasadi.model import geometry
from mbcasadi.model.geometry import DistanceRows
from mbcasadi.system.geometry_contacts import GeometryContact


class NearestPairs(NamedTuple):
    """Pairs of convex geoms of which the nearest get rows.

    Attributes:
        candidates: the pairs.
        rows: number of rows.
        smoothing: what rounded edges may take from a gap, m.
    """

    candidates: tuple[GeometryContact, ...]
    rows: int
    smoothing: float

    @property
    def names(self) -> tuple[str, ...]:
        """Of the rows: those of the pairs, or the rank where pairs are chosen in each tick."""
        if self.rows == len(self.candidates):
            return tuple(contact.name for contact in self.candidates)
        return tuple(f"nearest {k + 1}" for k in range(self.rows))


def nearest_of(
    contacts: Sequence[GeometryContact], count: int, smoothing: float
) -> NearestPairs | None:
    """Return the pairs of which the nearest get rows; None where all have formulas and few rows."""
    candidates = tuple(contact for contact in contacts if contact.is_pair)
    if len(candidates) <= count and all(contact.has_formula for contact in candidates):
        return None
    return NearestPairs(candidates, min(count, len(candidates)), smoothing)


def late_rows(nearest: NearestPairs, state: tuple[ca.SX, ca.SX]) -> tuple[DistanceRows, Late]:
    """Return the rows as symbols, and what they stand for.

    Args:
        nearest: the pairs.
        state: q, v.
    """
    pairs = [contact.geoms for contact in nearest.candidates]
    tree = nearest.candidates[0].tree
    values = geometry.nearest_rows(tree, pairs, nearest.rows, nearest.smoothing, state)
    symbols = DistanceRows(*(ca.SX.sym("late", *x.shape) for x in values))
    flat = [ca.vertcat(*map(ca.vec, rows)) for rows in (symbols, values)]
    return symbols, Late(flat[0], flat[1])
