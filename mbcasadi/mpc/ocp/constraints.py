"""Rows of a problem, hard and soft, in one form.

    lower <= T y + W e <= upper,   e_i >= 0 where ρ₁ > 0,   cost Σ ρ₁ e + ½ ρ₂ e²

y are the bounded values. A hard row has no slack. A soft row with a linear penalty has two sides,
`y - e <= upper` and `y + e >= lower`: its slack is zero unless its multiplier would exceed ρ₁. With
a quadratic penalty alone it is one row, `lower <= y - e <= upper`, with e of either sign.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem

REACH = 100.0
"""Largest ρ₁ / ρ₂, in sizes of the row. The slack's unconstrained optimum is `-ρ₁ / ρ₂`, and QPs
are solved to a fraction of the largest such distance."""

LEAST_SIZE = 1e-3
"""Least size of a row, in its unit; the largest is 1."""


@dataclass(frozen=True)
class RowSet:
    """The rows of one stage, `lower <= T y + W e <= upper`.

    Attributes:
        T: (m, r) selects the value that a row bounds.
        W: (m, k) selects the slack of a row.
        bounds: (m, 2).
        linear, quadratic: (k,) penalties ρ₁ and ρ₂ > 0.
    """

    T: Array
    W: Array
    bounds: Array
    linear: Array
    quadratic: Array

    @property
    def m(self) -> int:
        """Number of rows."""
        return int(self.T.shape[0])

    @property
    def k(self) -> int:
        """Number of slacks."""
        return int(self.W.shape[1])

    @property
    def places(self) -> list[int]:
        """Index of the value that each row bounds."""
        return [int(np.argmax(row)) for row in self.T]

    @property
    def sides(self) -> list[str]:
        """The side of its value that each row bounds, where there is a row for each side."""
        twice = [self.places.count(place) > 1 for place in self.places]
        low = [bool(np.isfinite(low)) for low in self.bounds[:, 0]]
        return [
            (".lower" if below else ".upper") if two else ""
            for two, below in zip(twice, low, strict=True)
        ]

    @property
    def owners(self) -> list[int]:
        """Index of the value that each slack belongs to."""
        return [self.places[int(np.argmax(np.abs(column)))] for column in self.W.T]

    @property
    def signed(self) -> list[int]:
        """Slacks that may not be negative."""
        return np.flatnonzero(self.linear > 0).tolist()

    @property
    def e_bounds(self) -> Array:
        """Bounds of the slacks, (k, 2)."""
        return np.column_stack([np.where(self.linear > 0, 0.0, -np.inf), np.full(self.k, np.inf)])

    def least_slacks(self, y: Array) -> Array:
        """Return the least slacks (..., k) for values (..., r)."""
        value = y @ self.T.T
        above = np.maximum(value - self.bounds[:, 1], 0.0)
        below = np.maximum(self.bounds[:, 0] - value, 0.0)
        # A row -e <= upper needs e above, a row +e >= lower needs e below; of either sign both.
        slacks: Array = np.zeros((*value.shape[:-1], self.k))
        for row, slack in zip(*np.nonzero(self.W), strict=True):
            excess = above[..., row] - below[..., row]
            slacks[..., slack] -= self.W[row, slack] * excess
        return slacks


def row_set(bounds: Array, penalties: Array | None, at: Array | None = None) -> RowSet:
    """Return the rows of values with these bounds (r, 2) and penalties (r, 2); inf for hard.

    Rows after those that have penalties are hard. With `at` (r, 2) they are the same rows, with
    these bounds in place of their own.
    """
    r = len(bounds)
    prices = np.full((r, 2), np.inf)
    if penalties is not None:
        prices[: len(penalties)] = penalties
    limited = np.isfinite(bounds).any(axis=1)
    soft = np.flatnonzero(np.isfinite(prices).all(axis=1) & limited).tolist()
    T, W, row_bounds = [], [], []
    for i, ((low, high), own) in enumerate(zip(bounds if at is None else at, bounds, strict=True)):
        value_entry, slack_entry = np.eye(r)[i], np.zeros(len(soft))
        if i in soft:
            slack_entry[soft.index(i)] = 1.0
        sides = [(slack_entry, (low, np.inf), own[:1]), (-slack_entry, (-np.inf, high), own[1:])]
        one_sided = i not in soft or not prices[i, 0]
        for of_slack, span, ends in [(-slack_entry, (low, high), own)] if one_sided else sides:
            if i not in soft or np.isfinite(ends).any():
                T.append(value_entry)
                W.append(of_slack)
                row_bounds.append(span)
    return RowSet(
        np.reshape(T, (len(T), r)),
        np.reshape(W, (len(T), len(soft))),
        np.reshape(row_bounds, (len(T), 2)),
        prices[soft, 0],
        prices[soft, 1],
    )


def path_rows(ocp: OptimalControlProblem) -> RowSet:
    """Return the rows of the path at one stage."""
    return row_set(ocp.path_bounds, ocp.path_penalties)


def first_path_rows(ocp: OptimalControlProblem) -> RowSet:
    """Return the rows of the path at the given state, whose bounds may differ."""
    return row_set(ocp.path_bounds, ocp.path_penalties, ocp.first_path_bounds)


def end_rows(ocp: OptimalControlProblem) -> RowSet:
    """Return the rows at the end."""
    return row_set(ocp.end_bounds, ocp.end_penalties)


def penalties_of(name: str, linear: float, quadratic: float, bounds: Array) -> Array:
    """Return penalties (r, 2), ρ₁ and ρ₂ of each value; inf for hard rows.

    The size of a row is its largest bound, clipped to at most 1, and 1 where that is zero.

    Args:
        name: of the rows, for messages.
        linear, quadratic: ρ₁ and ρ₂; both zero for hard rows.
        bounds: (r, 2) of the values.

    Raises:
        ProblemError: a negative penalty, or one that is not finite.
    """
    for label, penalty in (("linear_penalty", linear), ("quadratic_penalty", quadratic)):
        if not 0 <= penalty < np.inf:
            raise ProblemError(f"{name}: {label} = {penalty}; expected a finite number, at least 0")
    if not (linear or quadratic):
        return np.full((len(bounds), 2), np.inf)
    size = np.abs(np.where(np.isfinite(bounds), bounds, 0.0)).max(axis=1, initial=0.0)
    size = np.where(size > 0, np.clip(size, LEAST_SIZE, 1.0), 1.0)
    curvature = np.maximum(quadratic, linear / (REACH * size))
    return np.column_stack([np.full(len(bounds), linear), curvature])


def describe_violations(
    names: Sequence[str], bounds: Array, values: Array, first: int, tolerance: float
) -> list[str]:
    """Return one sentence for each value that leaves its bounds.

    Args:
        names: of the values.
        bounds: (samples, r, 2), or (r, 2) of all samples.
        values: (samples, r).
        first: number of the first sample.
        tolerance: largest excess that is ignored.
    """
    sentences = []
    low_all, high_all = np.moveaxis(np.broadcast_to(bounds, (*values.shape, 2)), 2, 0)
    for name, low, high, value in zip(names, low_all.T, high_all.T, values.T, strict=True):
        for relation, excess in (
            ("exceeds its upper", value - high),
            ("falls below its lower", low - value),
        ):
            samples = first + np.flatnonzero(excess > tolerance)
            if samples.size:
                spans = ", ".join(_spans(samples.tolist()))
                plural = "s" if samples.size > 1 else ""
                sentences.append(
                    f"{name} at sample{plural} {spans} {relation} bound by up to {excess.max():.3g}"
                )
    return sentences


def _spans(samples: list[int]) -> list[str]:
    """Return `3..7` for samples in a row."""
    spans: list[list[int]] = []
    for k in samples:
        if spans and k == spans[-1][1] + 1:
            spans[-1][1] = k
        else:
            spans.append([k, k])
    return [f"{a}" if a == b else f"{a}..{b}" for a, b in spans]
