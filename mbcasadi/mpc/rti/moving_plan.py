"""The plan of a tick as the guess of the next one, where intervals have lengths of their own.

The samples of the next plan are at other times than those of the last one. A state is that of the
last plan at its time, interpolated along the manifold between two samples; a control, and what the
QP begins with for the rows of an interval, are those of the interval that holds its middle. Behind
the end of the plan there is one more tick, under its last control.

    z ends with (lengths of the intervals, time since the plan began, the state behind its end).
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.mpc.ocp.motion_form import charts
from mbcasadi.mpc.ocp.problem import STEP, Array, OptimalControlProblem

SHORTEST = 1e-9
"""s, length that an interval in z has at least: z may hold anything."""


@dataclass(frozen=True)
class Plan:
    """States (nx, N + 1) at times (N + 1,), s, and the controls (nu, N) between them."""

    ocp: OptimalControlProblem
    times: ca.MX
    X: ca.MX
    U: ca.MX

    def interval(self, times: ca.MX) -> ca.MX:
        """Return the number of the interval that holds each of these times (n,)."""
        later, n = self.times[1:-1, 0], times.shape[0]
        if not later.shape[0]:
            return ca.MX.zeros(n)
        passed = ca.repmat(times, 1, later.shape[0]) >= ca.repmat(later.T, n, 1)
        return ca.densify(ca.sum2(passed))

    def states(self, times: ca.MX) -> ca.MX:
        """Return the states (nx, n) at times (n,), s; those at the ends beyond them."""
        moved, gap = self._charts()
        k, count = self.interval(times), times.shape[0]
        left, right, begins = _columns(self.X, k), _columns(self.X, k + 1), self.times[k]
        length = ca.fmax(self.times[k + 1] - begins, SHORTEST)
        share = ca.fmin(ca.fmax((times - begins) / length, 0), 1)
        way = gap.map(count)(left, right)
        states: ca.MX = moved.map(count)(left, way * ca.repmat(share.T, way.shape[0], 1))
        return states

    def controls(self, times: ca.MX) -> ca.MX:
        """Return the controls (nu, n) at times (n,), s."""
        return _columns(self.U, self.interval(times))

    def _charts(self) -> tuple[ca.Function, ca.Function]:
        """Return (x, deviation) → (x ⊕ deviation), and (x, y) → (y ⊖ x)."""
        ocp = self.ocp
        if ocp.system is not None:
            return charts(ocp.system, ocp.nu if ocp.has_rates else 0)[:2]
        x, y = ca.SX.sym("x", ocp.nx), ca.SX.sym("y", ocp.nx)
        return ca.Function("moved", [x, y], [x + y]), ca.Function("gap", [x, y], [y - x])


@dataclass(frozen=True)
class MovingPlan:
    """How the plan of a tick becomes the guess of the next one.

    Attributes:
        ocp: the problem, whose intervals have given lengths.
        tick: time between two ticks, s.
        rows: (kinds, N) places of the rows of intervals in what the QP begins with.
        are_multipliers: whether that are multipliers, which grow with the interval, or signs.
    """

    ocp: OptimalControlProblem
    tick: float
    rows: NDArray[np.int_]
    are_multipliers: bool

    @property
    def size(self) -> int:
        """Number of entries of z."""
        return self.ocp.horizon + 1 + self.ocp.nx

    @property
    def components(self) -> list[str]:
        """Names of the entries."""
        lengths = [f"{STEP}[{k}]" for k in range(self.ocp.horizon)]
        return [*lengths, "since", *(f"{name}[behind]" for name in self.ocp.names("x"))]

    def first(self, x_end: Array) -> Array:
        """Return the entries for a guess at nominal times that ends with a state (nx,)."""
        return np.concatenate([np.diff(self.ocp.times), [0.0], x_end])

    def lengths(self, P: ca.MX) -> ca.MX:
        """Return the lengths (N,) of the intervals in p of all samples."""
        return P[slot_slices(self.ocp.slots)[STEP].start, : self.ocp.horizon].T

    def nodes(self, P: ca.MX) -> ca.MX:
        """Return the times (N + 1,) of the samples from the first one on, s."""
        return ca.vertcat(0, ca.cumsum(self.lengths(P)))

    def for_a_tick(self, p: ca.MX) -> ca.MX:
        """Return p (np,) of an interval of one tick."""
        p = ca.MX(p)
        p[slot_slices(self.ocp.slots)[STEP], 0] = self.tick
        return p

    def remembered(self, P: ca.MX, x_behind: ca.MX, kept: ca.MX, moves: bool) -> ca.MX:
        """Return the entries of the next z.

        Args:
            P: p of all samples.
            x_behind: (nx,) state one tick behind the end.
            kept: whether the plan is kept; a fresh guess has nominal lengths.
            moves: whether time passes.
        """
        nominal, since = ca.DM(np.diff(self.ocp.times)), ca.MX(self.tick if moves else 0.0)
        lengths = ca.if_else(kept, self.lengths(P), nominal)
        return ca.vertcat(lengths, ca.if_else(kept, since, 0), x_behind)

    def guess(
        self, plan: tuple[ca.MX, ca.MX, ca.MX], remembered: ca.MX, P: ca.MX, u_last: ca.MX
    ) -> tuple[ca.MX, ca.MX, ca.MX]:
        """Return states, controls and what the QP begins with at the times of this tick.

        Args:
            plan: the same of the last plan.
            remembered: its entries of z.
            P: p of all samples.
            u_last: (nu,) control before, where it is a part of the state.
        """
        ocp, (X, U, active) = self.ocp, plan
        N = ocp.horizon
        before, since = ca.fmax(remembered[:N], SHORTEST), remembered[N]
        old = ca.vertcat(0, ca.cumsum(before), ca.sum1(before) + self.tick)
        last = Plan(ocp, old, ca.horzcat(X, remembered[N + 1 :]), ca.horzcat(U, U[:, -1]))
        lengths, times = self.lengths(P), since + self.nodes(P)
        middle = times[:-1] + lengths / 2
        states, controls = last.states(times), last.controls(middle)
        if ocp.has_rates:
            of_x = ocp.nx - ocp.nu
            states = ca.vertcat(states[:of_x, :], ca.horzcat(u_last, controls))
        return states, controls, self._rows_at(active, last.interval(middle), before, lengths)

    def _rows_at(self, active: ca.MX, k: ca.MX, before: ca.MX, lengths: ca.MX) -> ca.MX:
        """Return what the QP begins with, of the intervals k of the last plan."""
        kinds, N = self.rows.shape
        if not kinds:
            return active
        k = ca.fmin(k, N - 1)
        moved = _columns(ca.reshape(active[self.rows.T.ravel().tolist()], kinds, N), k)
        if self.are_multipliers:
            moved = moved * ca.repmat((lengths / before[k]).T, kinds, 1)
        places = np.arange(active.shape[0]) + kinds * N
        places[self.rows.T.ravel()] = np.arange(kinds * N)
        return ca.vertcat(ca.vec(moved), active)[places.tolist()]


def _columns(matrix: ca.MX, k: ca.MX) -> ca.MX:
    """Return the columns of these numbers (n,)."""
    return ca.reshape(matrix[:, k], matrix.shape[0], k.shape[0])
