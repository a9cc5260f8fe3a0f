"""A stagewise linear-quadratic problem over its horizon: recursion, motion, rows and residuals.

    min  Σ_k ½ |w_k|²   subject to   lower <= T y + W e <= upper     (see `interval` and `rows`)

The horizon is a list of phases of equal intervals. The residuals of a solution are those of the
problem with states and slacks, the motion run forward and the costates backward:

    primal            violation of rows with their slacks, relative to their values,
    stationarity      gradient by every u, from costates run backward, and by every e,
    complementarity   Σ |λ gap|,

relative to the size of their terms. The solver's status is not used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.mpc.lq.interval import BoundedValues, Recursion
from mbcasadi.mpc.lq.rows import HorizonRows
from mbcasadi.qp.kkt_residuals import positive

Columns = Sequence[tuple[ca.MX, ...]]
"""The data of each phase, matrices with a column for each interval."""


class Motion(NamedTuple):
    """States (nx, N + 1), and controls (nu, count) of each phase."""

    X: ca.MX
    U: list[ca.MX]


class End(NamedTuple):
    """Of the last sample: cost (nx, nx + 1) as in `Recursion`; Jacobian and value of g_N."""

    cost: ca.MX
    rows: ca.MX


class Candidate(NamedTuple):
    """A solution: its motion, values of the rows, slacks, multipliers of A_qp."""

    motion: Motion
    values: list[ca.MX]
    e: ca.MX
    lam: ca.MX


@dataclass(frozen=True)
class Phase:
    """Equal intervals, one after the other.

    Attributes:
        count, nu: number of intervals, and of controls of each.
        bounded: what their rows bound.
        functions: of one interval.
    """

    count: int
    nu: int
    bounded: BoundedValues
    functions: Recursion

    @property
    def in_loops(self) -> bool:
        """Whether recursions are loops, or text for each interval."""
        return self.functions.rows is not None

    def steps(
        self,
        function: ca.Function,
        start: ca.MX,
        columns: Sequence[ca.MX | ca.DM],
        *,
        backward: bool = False,
    ) -> list[ca.MX]:
        """Return the states after each interval, as they are reached, and the outputs of each.

        Args:
            function: (state, columns of an interval) → (state, outputs).
            start: the state before.
            columns: a column for each interval.
            backward: whether the last interval comes first.
        """
        order = list(reversed(range(self.count))) if backward else list(range(self.count))
        if self.in_loops:
            loop = function.mapaccum(f"{function.name()}_all", self.count, 1)
            given = [column[:, order] for column in columns] if backward else columns
            states, *outputs = loop(start, *given)
            return [states, *(part[:, order] if backward else part for part in outputs)]
        parts = [ca.horzsplit(ca.MX(column)) for column in columns]
        reached, of_each = [start], {}
        for k in order:
            state, *of_each[k] = function(reached[-1], *(part[k] for part in parts))
            reached.append(state)
        sides = zip(*(of_each[k] for k in range(self.count)), strict=True)
        return [ca.horzcat(*reached[1:]), *(ca.horzcat(*side) for side in sides)]


@dataclass(frozen=True)
class Horizon:
    """The problem over all intervals; `columns` are its data, `gains` what `gains` returned.

    Attributes:
        nx: size of the state.
        phases: the intervals.
        rows: all rows.
    """

    nx: int
    phases: tuple[Phase, ...]
    rows: HorizonRows

    def gains(self, cost: ca.MX, columns: Columns) -> list[ca.MX]:
        """Return the gains of each phase, a column for each interval, by the Riccati recursion.

        Args:
            cost: of the last sample, (nx, nx + 1).
            columns: the data.
        """
        gains: list[ca.MX] = []
        for phase, data in zip(reversed(self.phases), reversed(columns), strict=True):
            costs, gain = phase.steps(phase.functions.riccati, cost, data, backward=True)
            cost = costs[:, -(self.nx + 1) :]
            gains.insert(0, gain)
        return gains

    def motion(self, x: ca.MX, w: ca.MX, columns: Columns, gains: Sequence[ca.MX]) -> Motion:
        """Return the motion from a state with these unknowns."""
        states, controls = [x], []
        sizes = [phase.nu * phase.count for phase in self.phases]
        parts = ca.vertsplit(w, np.cumsum([0, *sizes]).tolist())
        for phase, part, data, gain in zip(self.phases, parts, columns, gains, strict=True):
            w_k = ca.reshape(part, phase.nu, phase.count)
            later, u = phase.steps(phase.functions.motion, x, (w_k, *data, gain))
            x = later[:, -1]
            states.append(later)
            controls.append(u)
        return Motion(ca.horzcat(*states), controls)

    def matrix(self, columns: Columns, gains: Sequence[ca.MX], end: ca.MX) -> ca.MX:
        """Return A_qp.

        Args:
            columns, gains: of the intervals.
            end: `End.rows`.
        """
        in_loops = all(phase.in_loops for phase in self.phases)
        derive = self._by_loops if in_loops else self._by_blocks
        inside, at_end = derive(columns, gains)
        T = self.rows.stages[-1].of_one.T
        of_end = ca.sparsify(ca.DM(T)) @ (end[:, : self.nx] @ at_end) if T.size else ca.MX(0, 1)
        return self.rows.matrix(ca.vertcat(inside, of_end) if T.size else inside)

    def _by_loops(self, columns: Columns, gains: Sequence[ca.MX]) -> tuple[ca.MX, ca.MX]:
        """Return the derivatives of rows and last state by w, interval after interval."""
        nw, blocks = self.rows.nw, []
        X = ca.MX.zeros(self.nx, nw)
        for phase, data, gain in zip(self.phases, columns, gains, strict=True):
            assert phase.functions.rows is not None
            places = ca.DM.eye(phase.count)
            states, rows = phase.steps(phase.functions.rows, X, (*data, gain, places))
            X = states[:, (phase.count - 1) * nw :]
            blocks.append(rows.T)
        return ca.vertcat(*blocks), X

    def _by_blocks(self, columns: Columns, gains: Sequence[ca.MX]) -> tuple[ca.MX, ca.MX]:
        """Return the same, block lower triangular, column after column."""
        intervals = [
            (phase, [*(part[:, k] for part in data), gain[:, k]])
            for phase, data, gain in zip(self.phases, columns, gains, strict=True)
            for k in range(phase.count)
        ]
        entries, ends, pattern = [], [], []
        for j, (phase, own) in enumerate(intervals):
            assert phase.functions.first is not None
            X, rows = phase.functions.first(*own)
            blocks = [rows]
            for later, data in intervals[j + 1 :]:
                assert later.functions.later is not None
                X, rows = later.functions.later(X, *data)
                blocks.append(rows)
            entries.append(ca.vec(ca.horzcat(*blocks).T))
            ends.append(X)
            reached = [np.full(p.bounded.rows.m, k >= j) for k, (p, _) in enumerate(intervals)]
            pattern.append(np.outer(np.concatenate(reached), np.ones(phase.nu)))
        dense = ca.sparsify(ca.DM(np.hstack(pattern))).sparsity()
        return ca.MX(dense, ca.vertcat(*entries)), ca.horzcat(*ends)

    def values(
        self, motion: Motion, columns: Columns, end: ca.MX, about: Motion | None = None
    ) -> list[ca.MX]:
        """Return the bounded values of each phase, a column for each sample, and of the end.

        Args:
            motion: of the controls and states of the problem.
            columns: of the intervals.
            end: `End.rows`.
            about: what bounds of states and controls count from, where the motion is a deviation.
        """
        X, first, values = motion.X, 0, []
        whole = X if about is None else about.X + X
        for i, (phase, data) in enumerate(zip(self.phases, columns, strict=True)):
            last = first + phase.count
            u, here = motion.U[i], phase.bounded
            parts = [] if not here.controls else [u if about is None else about.U[i] + u]
            if here.states or here.controls:
                parts.append(here.choose(self.nx) @ whole[:, first + 1 : last + 1])
            if here.rows.T.shape[1] > len(here.states) + here.controls * phase.nu:
                along = phase.functions.along.map(phase.count)
                parts.append(along(X[:, first:last], u, *data))
            values.append(ca.vertcat(*parts))
            first = last
        return [*values, end[:, : self.nx] @ X[:, first] + end[:, self.nx]]

    def residuals(
        self,
        candidate: Candidate,
        columns: Columns,
        end: End,
        bounds: tuple[ca.MX, ca.MX] | None = None,
        extent: float | None = None,
    ) -> tuple[ca.MX, ca.MX]:
        """Return the three residuals, and the costates (nx, N) behind the intervals.

        Args:
            candidate: the candidate.
            columns: of the intervals.
            end: cost and rows of the last sample.
            bounds: of the rows without signs, in place of those of `rows`.
            extent: size of the rows' values; one and their length by default.
        """
        rows, count = self.rows, len(self.rows.bounds)
        values, signs = rows.rows(candidate.values), rows.S @ candidate.e
        relaxed = values + rows.W @ candidate.e if rows.linear.size else values
        low, high = rows.ends if bounds is None else bounds
        above, below = relaxed - high, low - relaxed
        size = 1 + ca.norm_2(values) if extent is None else extent
        primal = ca.norm_2(ca.vertcat(positive(above) + positive(below), positive(-signs))) / size

        lam, of_signs = candidate.lam[:count], candidate.lam[count:]
        multipliers = rows.value_multipliers(lam)
        slope, scale, costates = self._slope(candidate.motion, multipliers, columns, end)
        stationarity = ca.norm_2(slope) / scale
        complementarity = ca.sum1(ca.fabs(lam * ca.if_else(lam > 0, above, below)))
        if rows.linear.size:
            price = ca.DM(rows.linear) + ca.DM(rows.quadratic) * candidate.e
            of_e = rows.W.T @ lam
            # Signs are rows of s = √ρ₂ (e + ρ₁ / ρ₂) in the QP.
            sign_multipliers = ca.DM(np.sqrt(rows.quadratic[rows.signed])) * of_signs
            by_e = price + of_e + rows.S.T @ sign_multipliers
            slack_scale = 1 + ca.norm_2(price) + ca.norm_2(of_e) + ca.norm_2(sign_multipliers)
            stationarity += ca.norm_2(by_e) / slack_scale
            complementarity += ca.sum1(ca.fabs(sign_multipliers * signs))
        residuals = ca.vertcat(primal, stationarity, complementarity / (scale * size))
        return residuals, costates

    def _slope(
        self, motion: Motion, mu: Sequence[ca.MX], columns: Columns, end: End
    ) -> tuple[ca.MX, ca.MX, ca.MX]:
        """Return the gradient by all controls, the size of its terms, and the costates."""
        costate = end.cost[:, : self.nx] @ motion.X[:, -1] + end.cost[:, self.nx]
        if end.rows.numel():
            costate += end.rows[:, : self.nx].T @ mu[-1]
        slopes, sizes, last, behind = [], [], motion.X.shape[1] - 1, list[ca.MX]()
        for i in reversed(range(len(self.phases))):
            phase, first = self.phases[i], last - self.phases[i].count
            data = (*columns[i], motion.X[:, first:], motion.U[i], mu[i])
            costates, slope, size = phase.steps(
                phase.functions.adjoint, costate, data, backward=True
            )
            behind += [costate, costates[:, :-1]]
            costate, last = costates[:, -1], first
            slopes.append(ca.vec(slope))
            sizes.append(size)
        backward = ca.horzcat(*behind)
        order = [*reversed(range(backward.shape[1]))]
        return ca.vertcat(*slopes), ca.sqrt(ca.sum2(ca.horzcat(*sizes))), backward[:, order]
