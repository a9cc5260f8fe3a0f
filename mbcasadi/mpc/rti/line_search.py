"""The length of a step from a guess: a filter of one point.

    D < 0:   φ(α) <= φ(0) + α D / 10
    D >= 0:  θ(α) <= (1 - α / 2) θ(0)   or   φ(α) <= φ(0)

The first α of 1, ½, ¼, … for which this holds is taken. φ is
the cost with the prices of soft rows, D its derivative along the step, θ the sum of all gaps and of
the violations of hard rows, at the guess with the measured first state: where closing gaps costs,
they must close, else the cost must fall [A. Wächter, L. T. Biegler, Math. Program. 106, 2006, (18)
to (20), without a memory of steps before].
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
"""Rise of the cost, and gaps of a state, relative to their size, that are no rise and no gap."""

FALL = 0.1
"""Share of the fall of the cost, as its derivative promises, that a step has to bring."""


class Worth(NamedTuple):
    """What a plan is worth: its cost, gaps and violations, size of the states, paid for slacks."""

    cost: ca.MX
    gaps: ca.MX
    size: ca.MX
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

    def length(self, guess: Guess, step: tuple[ca.MX, ca.MX], x0: ca.MX, slope: ca.MX) -> ca.MX:
        """Return α of a step.

        Args:
            guess: where it begins.
            step: deviations of X (·, N + 1) and changes of U (nu, N).
            x0: (nx,) the measured state.
            slope: derivative of the cost along the step, and what the slacks of its end cost.
        """
        given = [guess.X, guess.U, *step, x0, guess.P]
        X, U, dX, dU, x_first, P = inputs = [ca.MX.sym("s", *part.shape) for part in given]
        worth, promised, alpha = ca.MX.sym("worth", 4), ca.MX.sym("slope"), ca.MX.sym("alpha")
        measure, before = self._measure_fun(), Worth(*ca.vertsplit(worth))
        later = self.moved.map(self.ocp.horizon)(X[:, 1:], alpha * dX[:, 1:])
        values = measure(ca.horzcat(x_first, later), U + alpha * dU, P)
        after = Worth(*ca.vertsplit(values))
        rate, rounding = promised - before.paid, ROUNDING * (1 + ca.fabs(before.cost))
        closes = after.gaps <= (1 - alpha / 2) * before.gaps + ROUNDING * before.size
        taken = ca.logic_or(
            after.cost <= before.cost + FALL * alpha * ca.fmin(rate, 0) + rounding,
            ca.logic_and(rate >= -rounding, closes),
        )
        known = [worth, promised, *inputs]
        attempt = ca.Function("attempt", [alpha, *known], [taken])
        search = ca.Function("shortest", known, [ca.MX(0.5**self.halvings)])
        for k in reversed(range(self.halvings)):
            here = ca.Function(f"length{k}", known, [ca.MX(0.5**k)])
            either = ca.Function.if_else(f"either{k}", here, search)
            length = either(attempt(0.5**k, *known), *known)
            search = ca.Function(f"search{k}", known, [length])
        at_guess = measure(ca.horzcat(x0, guess.X[:, 1:]), guess.U, guess.P)
        found: ca.MX = search(at_guess, slope, *given)
        return found

    def _measure_fun(self) -> ca.Function:
        """Return (X, U, P) → (`Worth`)."""
        ocp, N = self.ocp, self.ocp.horizon
        X, U = ca.MX.sym("X", ocp.nx, N + 1), ca.MX.sym("U", ocp.nu, N)
        P = ca.MX.sym("P", ocp.np_, N + 1)
        is_first = ca.DM(np.eye(N)[:1])
        inside = self._interval_fun().map(N)(X[:, :N], U, P[:, :N], X[:, 1:], is_first)
        x, p = X[:, N], P[:, N]
        paid, hard = _priced(ocp.end(x, p), ocp.end_bounds, ocp.end_penalties)
        beyond = hard + ca.sum1(_violation(x, ocp.x_bounds))
        at_end = ca.vertcat(ca.sumsqr(ocp.terminal(x, p)) / 2 + paid, beyond, ca.norm_1(x), paid)
        return ca.Function("measure", [X, U, P], [ca.sum2(inside) + at_end])

    def _interval_fun(self) -> ca.Function:
        """Return (x, u, p, x_next, is_first) → (`Worth`) of an interval."""
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
        paid, hard = _priced(g, ocp.path_bounds, ocp.path_penalties)
        beyond = hard + ca.sum1(_violation(x, ocp.x_bounds))
        violated = ca.norm_1(gap) + (1 - is_first) * beyond
        outputs = ca.vertcat(ca.sumsqr(r) / 2 + paid, violated, ca.norm_1(x), paid)
        return ca.Function("worth", [x, u, p, x_next, is_first], [outputs], {"cse": True})


def _violation(value: ca.MX, bounds: Array) -> ca.MX:
    """Return by how much values are out of their bounds; of those that have any."""
    rows = np.flatnonzero(np.isfinite(bounds).any(axis=1)).tolist()
    some, low, high = value[rows, 0], bounds[rows, 0], bounds[rows, 1]
    return ca.fmax(0, ca.fmax(ca.DM(low) - some, some - ca.DM(high)))


def _priced(value: ca.MX, bounds: Array, penalties: Array | None) -> tuple[ca.MX, ca.MX]:
    """Return what violations of soft rows cost, and the sum of those of hard ones."""
    prices = np.full((len(bounds), 2), np.inf) if penalties is None else penalties
    soft = np.isfinite(prices[:, 0])
    places = [
        np.flatnonzero(np.isfinite(bounds).any(axis=1) & kind).tolist() for kind in (soft, ~soft)
    ]
    paid, hard = (_violation(value[rows, 0], bounds[rows]) for rows in places)
    linear, quadratic = (ca.DM(prices[places[0], i]) for i in (0, 1))
    return ca.dot(linear, paid) + ca.dot(quadratic, paid**2) / 2, ca.sum1(hard)
