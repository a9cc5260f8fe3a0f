"""The limbs of a sparse matrix: groups of rows that meet in a few shared columns only.

Rows of a mechanism's leg touch the joints of the leg and of what carries it. Without the shared
columns (those of the floating base, say) the rows fall apart into groups, and no group has a
structural entry in the own columns of another one. Structure alone decides, so groups are the same
for all values and all masks.

Inside a limb rows are taken by their size, and so are the last rows of all limbs (`limb_factor`),
what a straight leg leaves to the shared columns. Other rows of a limb are taken before those of the
next one. A limb with two rows more than own columns would have such a row at all poses: it might
nearly repeat others where a later row repeats them, and the order would decide on the rank.
Limbs like this are not divided.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked

Pattern = NDArray[np.bool_]

MOST_LEFT = 1
"""Rows of a limb for which it has no own column."""


@dataclass(frozen=True)
class Limb:
    """Rows that may depend on each other by themselves, and the columns that only they touch."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def left(self) -> int:
        """Number of rows for which there is no own column."""
        return max(0, len(self.rows) - len(self.columns))

    @property
    def operations(self) -> int:
        """About how many operations the pivoted elimination of the own columns takes."""
        m, n = len(self.rows), len(self.columns)
        return sum(8 * m * max(n - k, 0) + 3 * m * m for k in range(m))


@dataclass(frozen=True)
class Limbs:
    """A matrix without its `shared` columns, in independent groups of rows."""

    shared: tuple[int, ...]
    groups: tuple[Limb, ...]

    @property
    def operations(self) -> int:
        """About how many operations the factorisation of `limb_factor` takes."""
        m, nb = sum(len(limb.rows) for limb in self.groups), len(self.shared)
        limbs = sum(limb.operations for limb in self.groups)
        last = len(self.groups) ** 2 * (4 * nb + m)  # the order of their last rows
        null = m**3 // 3 + 2 * m**3  # left null vectors, orthonormal
        return limbs + last + 6 * m * nb**2 + m**2 * nb + null


@checked
def limbs_of(pattern: ca.Sparsity) -> Limbs:
    """Return the limbs whose factorisation takes the fewest operations.

    Columns are shared from some number of rows on that touch them, and every limb has own ones.
    """
    filled = np.array(ca.DM(pattern, 1), dtype=bool).reshape(pattern.shape)
    return min(_candidates(filled), key=lambda limbs: limbs.operations)


def _candidates(filled: Pattern) -> Iterator[Limbs]:
    touching = filled.sum(axis=0)
    yield Limbs((), tuple(_groups(filled, np.zeros(filled.shape[1], dtype=bool))))
    for least in np.unique(touching[touching > 1]):
        shared = touching >= least
        groups = tuple(_groups(filled, shared))
        divided = all(limb.columns and limb.left <= MOST_LEFT for limb in groups)
        if len(groups) > 1 and divided:
            yield Limbs(tuple(int(j) for j in np.flatnonzero(shared)), groups)


def _groups(filled: Pattern, shared: NDArray[np.bool_]) -> Iterator[Limb]:
    """Return the rows that are joined by columns that are not shared; rows without any, alone."""
    left = list(range(filled.shape[0]))
    while left:
        rows = {left[0]}
        columns = filled[left[0]] & ~shared
        while True:
            joined = {i for i in left if np.any(filled[i] & columns)} | rows
            if joined == rows:
                break
            rows = joined
            columns = np.any(filled[sorted(rows)], axis=0) & ~shared
        left = [i for i in left if i not in rows]
        yield Limb(tuple(sorted(rows)), tuple(int(j) for j in np.flatnonzero(columns)))
