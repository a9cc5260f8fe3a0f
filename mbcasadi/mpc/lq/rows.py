"""The rows of all intervals as those of a least-distance problem.

In each interval y = (u, some entries of x⁺, g), at the end y = g_N; y is affine in the whitened
controls w, `y = y_0 + A w`. A slack becomes an unknown of unit weight by

    s = √ρ₂ (e + ρ₁ / ρ₂),   ρ₁ e + ½ ρ₂ e² = ½ s² + const,

so the unknowns are (w, s) and the rows `lower <= T y + W e <= upper`, then `s >= ρ₁ / √ρ₂` for the
slacks that have a sign.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.ocp.constraints import RowSet

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StageRows:
    """Rows of equal intervals, one after the other, or of the end.

    Attributes:
        count: number of intervals.
        of_one: rows of one of them, over its values y.
        labels: name of each value.
    """

    count: int
    of_one: RowSet
    labels: tuple[str, ...]

    @property
    def m(self) -> int:
        """Number of rows without signs."""
        return self.count * self.of_one.m


@dataclass(frozen=True)
class HorizonRows:
    """All rows, stage by stage and sample by sample, then signs.

    Attributes:
        nw: number of unknowns w.
        stages: the rows of equal intervals, and at last of the end.
        given: rows of the first interval that the given state decides alone: they do not count.
    """

    nw: int
    stages: tuple[StageRows, ...]
    given: tuple[int, ...] = ()

    @property
    def n(self) -> tuple[int, int]:
        """Numbers of unknowns w and s."""
        return self.nw, self.linear.size

    @property
    def m(self) -> int:
        """Number of rows."""
        return len(self.bounds) + len(self.signed)

    @cached_property
    def linear(self) -> Array:
        """ρ₁ of every slack."""
        return np.concatenate([np.tile(stage.of_one.linear, stage.count) for stage in self.stages])

    @cached_property
    def quadratic(self) -> Array:
        """ρ₂ of every slack."""
        prices = [np.tile(stage.of_one.quadratic, stage.count) for stage in self.stages]
        return np.concatenate(prices)

    @cached_property
    def signed(self) -> list[int]:
        """Slacks that may not be negative."""
        return np.flatnonzero(self.linear > 0).tolist()

    @property
    def resting(self) -> Array:
        """The active set in which all slacks are zero and no other row is active."""
        return np.append(np.zeros(len(self.bounds)), -np.ones(len(self.signed)))

    @cached_property
    def bounds(self) -> Array:
        """Bounds of the rows without signs, ±UNBOUNDED where there are none."""
        limits = np.vstack([np.tile(s.of_one.bounds, (s.count, 1)) for s in self.stages])
        limits[list(self.given)] = [-np.inf, np.inf]
        return np.clip(limits, -UNBOUNDED, UNBOUNDED)

    @cached_property
    def W(self) -> ca.DM:
        """Selects the slack of each row."""
        blocks = [ca.kron(ca.DM.eye(s.count), ca.sparsify(ca.DM(s.of_one.W))) for s in self.stages]
        return ca.sparsify(ca.diagcat(*blocks))

    @cached_property
    def S(self) -> ca.DM:
        """Selects the slacks with a sign."""
        return ca.sparsify(ca.DM(np.eye(self.linear.size)[self.signed]))

    @cached_property
    def _keys(self) -> list[tuple[str, int, int]]:
        """Name, stage and sample of each row, in the order of an active set."""
        rows, signs, first = [], [], 0
        for stage, part in enumerate(self.stages):
            of_one, samples = part.of_one, range(first, first + part.count)
            sides = list(zip(of_one.places, of_one.sides, strict=True))
            owners = [of_one.owners[i] for i in of_one.signed]
            rows += [(f"{part.labels[i]}{side}", stage, k) for k in samples for i, side in sides]
            signs += [(f"slack.{part.labels[i]}", stage, k) for k in samples for i in owners]
            first += part.count
        return rows + signs

    @property
    def names(self) -> list[str]:
        """Return names of all rows, in the order of an active set."""
        return [f"{name}[{sample}]" for name, _, sample in self._keys]

    @cached_property
    def later(self) -> list[int]:
        """Index of the same row at the next sample, or its own at the end of its stage."""
        place = {key: i for i, key in enumerate(self._keys)}
        return [place.get((name, stage, k + 1), i) for i, (name, stage, k) in enumerate(self._keys)]

    @property
    def by_sample(self) -> NDArray[np.int_]:
        """(kinds, N) index of each row of the first intervals at each sample, signs among them."""
        kinds = dict[str, list[int]]()
        for i, (name, stage, _) in enumerate(self._keys):
            if stage == 0:
                kinds.setdefault(name, []).append(i)
        return np.array([*kinds.values()], dtype=int).reshape(len(kinds), self.stages[0].count)

    def matrix(self, of_w: ca.MX) -> ca.MX:
        """Return A_qp from the derivatives by w of the rows without signs."""
        if not self.linear.size:
            return of_w
        scale = ca.sparsify(ca.diag(ca.DM(1 / np.sqrt(self.quadratic))))
        zeros = ca.MX(len(self.signed), self.nw)
        return ca.vertcat(ca.horzcat(of_w, self.W @ scale), ca.horzcat(zeros, self.S))

    def limits(self, at_0: ca.MX, bounds: tuple[ca.MX, ca.MX] | None = None) -> tuple[ca.MX, ca.MX]:
        """Return lba and uba.

        Args:
            at_0: values of the rows at w = 0, e = 0.
            bounds: in place of `self.bounds`, infinite where those are.
        """
        offset = self.W @ ca.DM(self.linear / self.quadratic) if self.linear.size else ca.DM(0)
        finite = (np.abs(self.bounds) < UNBOUNDED).astype(float)
        ends: tuple[Any, Any] = self.ends if bounds is None else bounds
        low, high = (end + ca.DM(finite[:, i]) * (offset - at_0) for i, end in enumerate(ends))
        least = (self.linear / np.sqrt(self.quadratic))[self.signed]
        far = np.full(least.size, UNBOUNDED)
        return ca.vertcat(low, ca.DM(least)), ca.vertcat(high, ca.DM(far))

    @property
    def ends(self) -> tuple[ca.DM, ca.DM]:
        """Lower and upper bounds of the rows without signs."""
        return ca.DM(self.bounds[:, 0]), ca.DM(self.bounds[:, 1])

    def slacks(self, s: Sym) -> Sym:
        """Return e of the unknowns s."""
        if not self.linear.size:
            return s
        return s / ca.DM(np.sqrt(self.quadratic)) - ca.DM(self.linear / self.quadratic)

    def rows(self, values: Sequence[Sym]) -> Sym:
        """Return `T y` of all rows, from the values of each stage, a column for each sample."""
        pairs = zip(self.stages, values, strict=True)
        return ca.vertcat(*(ca.vec(_selected(s.of_one.T, y)) for s, y in pairs))

    def value_multipliers(self, lam: Sym) -> list[Sym]:
        """Return the multipliers of the values of each stage, a column for each sample."""
        parts = ca.vertsplit(lam, np.cumsum([0, *(stage.m for stage in self.stages)]).tolist())
        pairs = zip(self.stages, parts, strict=True)
        return [_selected(s.of_one.T.T, ca.reshape(mu, s.of_one.m, s.count)) for s, mu in pairs]


def _selected(T: Array, values: Sym) -> Sym:
    """Return `T values`."""
    if T.shape[0] == T.shape[1] and np.array_equal(T, np.eye(len(T))):
        return values
    return ca.sparsify(ca.DM(T)) @ values
