"""The length of a step from a guess: a line search by an exact merit.

    m = cost + prices of soft rows + 1.1 (Σ |λ_k|ᵀ |gap_k| + |μ|_∞ · violations of hard rows)

with the costates λ_k and multipliers μ of the QP of the step, at the guess with the measured first
state. The first α of 1, ½, ¼, … is taken for which

    m(α) <= m(0) + α D / 10

with D the derivative of m along the step, which is negative: the multipliers are those that price
what the step closes [J. Nocedal, S. J. Wright, Numerical Optimization, 2006, (18.30), (18.28)].
"""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.description.tolerance import tolerance
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.rti.interval_derivatives import chart_of, reached
from mbcasadi.mpc.rti.memory import Guess

ROUNDING = tolerance(1e-10)
"""Rise of the merit, relative to its size, that is none."""

FALL = 0.1
"""Share of the fall of the merit, as its derivative promises, that a step has to bring."""

ABOVE = 1.1
"""Price of gaps and violations, relative to their multipliers."""


class Slope(NamedTuple):
    """What is known of the cost along a step.

    Attributes:
        rate: its derivative, without that of slacks, and what the slacks at the end cost.
        costates: (·, N) behind the intervals.
        largest: multiplier of a row.
    """

    rate: ca.MX
    costates: ca.MX
    largest: ca.MX


class Worth(NamedTuple):
    """What a plan is worth: its merit, the share of gaps and violations, that of slacks."""

    merit: ca.MX
    gaps: ca.MX
    paid: ca.MX


@dataclass(frozen=True)
class LineSearch:
    """The search along a step.

    Attributes:
        ocp: the problem.
        moved: (x, d) → a state moved by a step d.
        halvings: largest number of times that α is halved.
    """

    ocp: OptimalControlProblem
    moved: ca.Function
    halvings: int

    def length(self, guess: Guess, step: tuple[ca.MX, ca.MX], x0: ca.MX, slope: Slope) -> ca.MX:
        """Return α of a step.

        Args:
            guess: where it begins.
            step: deviations of X (·, N + 1) and changes of U (nu, N).
            x0: (nx,) the measured state.
            slope: of the cost along the step.
        """
        given = [guess.X, guess.U, *step, x0, guess.P, slope.costates, slope.largest]
        X, U, dX, dU, x_first, *fixed = inputs = [ca.MX.sym("s", *part.shape) for part in given]
        worth, rate, alpha = ca.MX.sym("worth", 3), ca.MX.sym("rate"), ca.MX.sym("alpha")
        measure, before = self._measure_fun(), Worth(*ca.vertsplit(worth))
        later = self.moved.map(self.ocp.horizon)(X[:, 1:], alpha * dX[:, 1:])
        values = measure(ca.horzcat(x_first, later), U + alpha * dU, *fixed)
        after = Worth(*ca.vertsplit(values))
        fall = FALL * alpha * ca.fmin(rate - before.paid - before.gaps, 0)
        rounding = ROUNDING * (1 + ca.fabs(before.merit))
        known = [worth, rate, *inputs]
        attempt = ca.Function(
            "attempt", [alpha, *known], [after.merit <= before.merit + fall + rounding]
        )
        search = ca.Function("shortest", known, [ca.MX(0.5**self.halvings)])
        for k in reversed(range(self.halvings)):
            here = ca.Function(f"length{k}", known, [ca.MX(0.5**k)])
            either = ca.Function.if_else(f"either{k}", here, search)
            length = either(attempt(0.5**k, *known), *known)
            search = ca.Function(f"search{k}", known, [length])
        at_guess = measure(ca.horzcat(x0, guess.X[:, 1:]), guess.U, *given[5:])
        found: ca.MX = search(at_guess, slope.rate, *given)
        return found

    def _measure_fun(self) -> ca.Function:
        """Return (X, U, P, costates, largest) → (`Worth`)."""
        ocp, N = self.ocp, self.ocp.horizon
        X, U = ca.MX.sym("X", ocp.nx, N + 1), ca.MX.sym("U", ocp.nu, N)
        P, largest = ca.MX.sym("P", ocp.np_, N + 1), ca.MX.sym("largest")
        costates = ca.MX.sym("costates", chart_of(ocp)[1].size1_out(0), N)
        is_first = ca.DM(np.eye(N)[:1])
        prices = ABOVE * ca.vertcat(ca.fabs(costates), ca.repmat(largest, 1, N))
        inside = self._interval_fun().map(N)(X[:, :N], U, P[:, :N], X[:, 1:], is_first, prices)
        x, p = X[:, N], P[:, N]
        counts = ca.DM.ones(len(ocp.end_bounds))
        paid, hard = _priced(ocp.end(x, p), ocp.end_bounds, ocp.end_penalties, counts)
        beyond = ABOVE * largest * (hard + ca.sum1(_violation(x, ocp.x_bounds)))
        merit = ca.sumsqr(ocp.terminal(x, p)) / 2 + paid + beyond
        total = ca.sum2(inside) + ca.vertcat(merit, beyond, paid)
        return ca.Function("measure", [X, U, P, costates, largest], [total])

    def _interval_fun(self) -> ca.Function:
        """Return (x, u, p, x_next, is_first, prices) → (`Worth`) of an interval."""
        ocp, form = self.ocp, self.ocp.motion
        x, u, p = (ca.MX.sym(key, n) for key, n in (("x", ocp.nx), ("u", ocp.nu), ("p", ocp.np_)))
        x_next, is_first = ca.MX.sym("x_next", ocp.nx), ca.MX.sym("first")
        if form is None:
            r, g, x_end = (part(x, u, p) for part in (ocp.residual, ocp.path, ocp.dynamics))
        else:
            a, lam = form.motion(x, u, p)
            r, g = (part(x, u, p, a, lam) for part in (form.residual, form.path))
            x_end = reached(form, x, u, a, form.length(p))
        gap = chart_of(ocp)[1](x_next, x_end)
        prices = ca.MX.sym("prices", gap.shape[0] + 1)
        of_state = np.zeros(len(ocp.path_bounds))
        of_state[ocp.rows_of_state] = 1.0
        counts = 1 - is_first * ca.DM(of_state)  # the given state decides its own rows
        paid, hard = _priced(g, ocp.path_bounds, ocp.path_penalties, counts)
        beyond = hard + (1 - is_first) * ca.sum1(_violation(x, ocp.x_bounds))
        gaps = ca.dot(prices[:-1], ca.fabs(gap)) + prices[-1] * beyond
        outputs = ca.vertcat(ca.sumsqr(r) / 2 + paid + gaps, gaps, paid)
        inputs = [x, u, p, x_next, is_first, prices]
        return ca.Function("worth", inputs, [outputs], {"cse": True})


def _violation(value: ca.MX, bounds: Array) -> ca.MX:
    """Return by how much values are out of their bounds; of those that have any."""
    rows = np.flatnonzero(np.isfinite(bounds).any(axis=1)).tolist()
    some, low, high = value[rows, 0], bounds[rows, 0], bounds[rows, 1]
    return ca.fmax(0, ca.fmax(ca.DM(low) - some, some - ca.DM(high)))


def _priced(
    value: ca.MX, bounds: Array, penalties: Array | None, counts: ca.MX | ca.DM
) -> tuple[ca.MX, ca.MX]:
    """Return what violations of soft rows cost, and the sum of those of hard ones.

    A row counts where its entry of `counts` is one, else it is zero.
    """
    prices = np.full((len(bounds), 2), np.inf) if penalties is None else penalties
    soft = np.isfinite(prices[:, 0])
    places = [
        np.flatnonzero(np.isfinite(bounds).any(axis=1) & kind).tolist() for kind in (soft, ~soft)
    ]
    paid, hard = (counts[rows, 0] * _violation(value[rows, 0], bounds[rows]) for rows in places)
    linear, quadratic = (ca.DM(prices[places[0], i]) for i in (0, 1))
    return ca.dot(linear, paid) + ca.dot(quadratic, paid**2) / 2, ca.sum1(hard)
