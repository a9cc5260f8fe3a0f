"""The rows of a real-time iteration as those of a least-distance problem.

In each interval y = (u_k, bounded entries of x_{k+1}, g_k), at the end y = g_N; y is affine in the
whitened controls w, `y = y_0 + A w`. A slack becomes an unknown of unit weight by

    s = √ρ₂ (e + ρ₁ / ρ₂),   ρ₁ e + ½ ρ₂ e² = ½ s² + const,

so the unknowns are (w, s) and the rows `lower <= T y + W e <= upper`, then `s >= ρ₁ / √ρ₂` for the
slacks that have a sign.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.ocp.constraints import RowSet, end_rows, row_set
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem


@dataclass(frozen=True)
class Rows:
    """All rows of the problem, interval by interval, then those of the end, then signs.

    Attributes:
        ocp: the problem.
        states: entries of x with a bound.
        interval, end: the rows of an interval, and of the end.
    """

    ocp: OptimalControlProblem
    states: list[int]
    interval: RowSet
    end: RowSet

    @cached_property
    def choose(self) -> ca.DM:
        """Selects the bounded entries of x."""
        return ca.sparsify(ca.DM(np.eye(self.ocp.nx)[self.states]))

    @property
    def values(self) -> int:
        """Number of values of an interval."""
        return int(self.interval.T.shape[1])

    @property
    def n(self) -> tuple[int, int]:
        """Numbers of unknowns w and s."""
        return self.ocp.nu * self.ocp.horizon, self.linear.size

    @property
    def m(self) -> int:
        """Number of rows."""
        return len(self.bounds) + len(self.signed)

    @cached_property
    def linear(self) -> Array:
        """ρ₁ of every slack."""
        return np.append(np.tile(self.interval.linear, self.ocp.horizon), self.end.linear)

    @cached_property
    def quadratic(self) -> Array:
        """ρ₂ of every slack."""
        return np.append(np.tile(self.interval.quadratic, self.ocp.horizon), self.end.quadratic)

    @cached_property
    def signed(self) -> list[int]:
        """Slacks that may not be negative."""
        return np.flatnonzero(self.linear > 0).tolist()

    @property
    def resting(self) -> Array:
        """The active set in which all slacks are zero and no other row is active."""
        return np.append(np.zeros(len(self.bounds)), -np.ones(len(self.signed)))

    @property
    def contradict(self) -> bool:
        """Whether hard rows can be infeasible; those of controls alone cannot."""
        inside = [not np.any(give) for give in self.interval.W]
        beyond = [place >= self.ocp.nu for place in self.interval.places]
        along = any(hard and far for hard, far in zip(inside, beyond, strict=True))
        return along or any(not np.any(give) for give in self.end.W)

    @cached_property
    def bounds(self) -> Array:
        """Bounds of the rows without signs, ±UNBOUNDED where there are none.

        The first state is given: rows of the path without a control begin one sample later.
        """
        limits = np.vstack([np.tile(self.interval.bounds, (self.ocp.horizon, 1)), self.end.bounds])
        path_fun, by_u = self.ocp.path, self.ocp.path.index_in("u")
        first = self.ocp.nu + len(self.states)
        with_control = {first + i for i in path_fun.jac_sparsity(0, by_u).row()}
        first_rows = [
            i for i, j in enumerate(self.interval.places) if j >= first and j not in with_control
        ]
        limits[first_rows] = [-np.inf, np.inf]
        return np.clip(limits, -UNBOUNDED, UNBOUNDED)

    @cached_property
    def W(self) -> ca.DM:
        """Selects the slack of each row."""
        along = ca.kron(ca.DM.eye(self.ocp.horizon), ca.sparsify(ca.DM(self.interval.W)))
        return ca.sparsify(ca.diagcat(along, ca.sparsify(ca.DM(self.end.W))))

    @cached_property
    def S(self) -> ca.DM:
        """Selects the slacks with a sign."""
        return ca.sparsify(ca.DM(np.eye(self.linear.size)[self.signed]))

    @property
    def names(self) -> list[str]:
        """Return names of all rows, in the order of an active set."""
        ocp, N = self.ocp, self.ocp.horizon
        x, u = ocp.names("x"), ocp.names("u")
        labels = [*u, *(x[i] for i in self.states), *ocp.names("path")]
        blocks = ((self.interval, labels, range(N)), (self.end, ocp.names("end"), (N,)))
        row_names = [
            f"{labels_of[i]}{side}[{k}]"
            for row_set, labels_of, samples in blocks
            for k in samples
            for i, side in zip(row_set.places, row_set.sides, strict=True)
        ]
        sign_names = [
            f"slack.{labels_of[row_set.owners[i]]}[{k}]"
            for row_set, labels_of, samples in blocks
            for k in samples
            for i in row_set.signed
        ]
        return row_names + sign_names

    def matrix(self, of_w: ca.MX, end_of_w: ca.MX) -> ca.MX:
        """Return A_qp from the derivatives by w of the rows and of the values at the end."""
        A = ca.vertcat(of_w, ca.sparsify(ca.DM(self.end.T)) @ end_of_w)
        if not self.linear.size:
            return A
        scale = ca.sparsify(ca.diag(ca.DM(1 / np.sqrt(self.quadratic))))
        zeros = ca.MX(len(self.signed), self.n[0])
        return ca.vertcat(ca.horzcat(A, self.W @ scale), ca.horzcat(zeros, self.S))

    def limits(self, at_0: ca.MX) -> tuple[ca.MX, ca.MX]:
        """Return lba and uba from the values of the rows at w = 0, e = 0."""
        offset = self.W @ ca.DM(self.linear / self.quadratic) if self.linear.size else 0
        finite = (np.abs(self.bounds) < UNBOUNDED).astype(float)
        low, high = (
            ca.DM(self.bounds[:, i]) + ca.DM(finite[:, i]) * (offset - at_0) for i in (0, 1)
        )
        least = (self.linear / np.sqrt(self.quadratic))[self.signed]
        return (
            ca.vertcat(low, ca.DM(least)),
            ca.vertcat(high, ca.DM(np.full(least.size, UNBOUNDED))),
        )

    def slacks(self, s: Sym) -> Sym:
        """Return e of the unknowns s."""
        if not self.linear.size:
            return s
        return s / ca.DM(np.sqrt(self.quadratic)) - ca.DM(self.linear / self.quadratic)

    def rows(self, along: Sym, at_end: Sym) -> Sym:
        """Return `T y` of all rows, from values (r, N) and (r_end,)."""
        inside = ca.vec(ca.sparsify(ca.DM(self.interval.T)) @ along)
        return ca.vertcat(inside, ca.sparsify(ca.DM(self.end.T)) @ at_end)

    def value_multipliers(self, lam: Sym) -> tuple[Sym, Sym]:
        """Return multipliers of the values, (r, N) and (r_end,)."""
        N, m = self.ocp.horizon, self.interval.m
        inside = ca.reshape(lam[: N * m], m, N)
        last = lam[N * m : N * m + self.end.m]
        return ca.DM(self.interval.T).T @ inside, ca.DM(self.end.T).T @ last

    def shift_active_set(self, active: Sym) -> Sym:
        """Return an active set shifted by one interval; the last interval is repeated."""
        N, m, k = self.ocp.horizon, self.interval.m, len(self.interval.signed)
        first, last = N * m, N * m + self.end.m + N * k
        signs = active[first + self.end.m : last]
        return ca.vertcat(
            active[m:first],
            active[first - m : first + self.end.m],
            signs[k:],
            signs[(N - 1) * k :],
            active[last:],
        )


def rows_of(ocp: OptimalControlProblem) -> Rows:
    """Return the rows of a problem: all controls, states with a finite bound, path and end."""
    states = np.flatnonzero(np.isfinite(ocp.x_bounds).any(axis=1)).tolist()
    bounds = np.vstack([ocp.u_bounds, ocp.x_bounds[states], ocp.path_bounds])
    hard = np.full((ocp.nu + len(states), 2), np.inf)
    penalties = ocp.path_penalties
    all_penalties = hard if penalties is None else np.vstack([hard, penalties])
    return Rows(ocp, states, row_set(bounds, all_penalties), end_rows(ocp))
