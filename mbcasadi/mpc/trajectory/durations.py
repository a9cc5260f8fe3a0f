"""An optimal control problem whose durations are unknowns, from one with intervals of a second.

    X = (q, v, T, [u_before], [start]),   X⁺ = (step of length h, T, u, start),
    r = (√h r_base, √(2 w h), √(w_u / h) (u - u_before)),   h = Σ share_i T_i,

share is one over the number of intervals for the phase that a sample is in, zero for the others: a
slice of p.
"""

from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.control.tasks.task import Slot
from mbcasadi.mpc.integrators.step_options import DEFAULT_DYNAMICS
from mbcasadi.mpc.ocp.collocation import CollocatedInterval, gauss
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.trajectory.layout import TrajectoryLayout, TrajectoryOptions
from mbcasadi.system import System

INSIDE = 0.5
"""Share of its least value that bounds a duration in all samples but the first, which has its own
bounds: equal to it in a solution, and positive in every iterate of a solver."""

SHARE = "phase.share"

NEWTON = 2
"""Newton's steps back onto the manifold at the end of a collocated interval."""


def problem_with_durations(
    base: OptimalControlProblem,
    layout: TrajectoryLayout,
    system: System,
    step: ca.Function,
    options: TrajectoryOptions,
) -> OptimalControlProblem:
    """Return the problem in X, from one in (q, v) with intervals of a second.

    Its first state is planned like all others, so no row has bounds of its own there.

    Args:
        base: the problem in (q, v).
        layout: of X.
        system: the mechanism.
        step: (q, v, u, [mask], h) → (q_next, v_next).
        options: durations, weights, growth.
    """
    horizon = base.horizon
    shares = Slot(SHARE, tuple(f"{i}" for i in range(layout.phases)), ("",) * layout.phases)
    stage = _Stage(base, layout, system, options)
    path, path_bounds = stage.path()
    x_next = stage.next(step)
    if stage.interval is not None:
        method = gauss(options.points)
        rows = ca.vertcat(*stage.interval.defects(method, DEFAULT_DYNAMICS))
        path = ca.vertcat(path, rows)
        path_bounds = np.vstack([path_bounds, np.zeros((rows.numel(), 2))])
        x_next = stage.after(stage.interval.end(method, NEWTON))
    end, end_bounds = stage.end()
    nominal = np.zeros((horizon + 1, stage.np_))
    nominal[:, : base.np_] = base.parameters()
    nominal[:, base.np_ :] = _shares(options.counts)
    return replace(
        base,
        period=float(options.spans.mean(axis=1).sum() / horizon),
        dynamics=stage.function("dynamics", "x_next", x_next),
        residual=stage.function("residual", "r", stage.residual()),
        terminal=stage.function("terminal", "r", base.terminal(stage.x, stage.p), last=True),
        path=stage.function("path", "g", path),
        path_bounds=path_bounds,
        end=stage.function("end", "g", end, last=True),
        end_bounds=end_bounds,
        u_bounds=np.vstack([base.u_bounds, np.tile([-np.inf, np.inf], (stage.rates, 1))]),
        x_bounds=np.vstack([base.x_bounds, _later(layout, options.spans)]),
        slots=(*base.slots, shares),
        state=_state(layout),
        nominal=nominal,
        rest=None,
        path_penalties=_hard(base.path_penalties, len(path_bounds)),
        given_rows=(),
        given_bounds=None,
        end_penalties=_hard(base.end_penalties, len(end_bounds)),
    )


class _Stage:
    """Symbols of one stage, and its expressions."""

    def __init__(
        self,
        base: OptimalControlProblem,
        layout: TrajectoryLayout,
        system: System,
        options: TrajectoryOptions,
    ) -> None:
        self.base, self.layout, self.options = base, layout, options
        self.np_, self.rates = base.np_ + layout.phases, 2 * options.points * layout.nv
        self.X, self.U = ca.MX.sym("x", layout.size), ca.MX.sym("u", layout.nu + self.rates)
        self.u = self.U[: layout.nu]
        self.P = ca.MX.sym("p", self.np_)
        self.x, self.p = self.X[: layout.nx], self.P[: base.np_]
        self.h = ca.dot(self.P[base.np_ :], self.X[layout.durations])
        self.grown = self.u - self.X[layout.before] if layout.has_rates else ca.MX(0, 1)
        self.interval = (
            CollocatedInterval(system, self.h, self.x, self.u, self.U[layout.nu :], None)
            if options.points
            else None
        )

    def function(self, name: str, output: str, value: ca.MX, *, last: bool = False) -> ca.Function:
        inputs = {"x": self.X} | ({} if last else {"u": self.U}) | {"p": self.P}
        return ca.Function(name, [*inputs.values()], [value], [*inputs], [output])

    def next(self, step: ca.Function) -> ca.MX:
        places, n = slot_slices(self.base.slots), self.layout.nq
        inputs = {"q": self.x[:n], "v": self.x[n:], "u": self.u, "h": self.h}
        inputs |= {key: self.p[places[key]] for key in ("mask",) if key in places}
        out = step(**inputs)
        return self.after(ca.vertcat(out["q_next"], out["v_next"]))

    def after(self, x: ca.MX) -> ca.MX:
        """Return the X that follows, with its constants."""
        before = self.u if self.layout.has_rates else ca.MX(0, 1)
        return ca.vertcat(x, self.X[self.layout.durations], before, self.X[self.layout.start])

    def residual(self) -> ca.MX:
        options = self.options
        residuals = [ca.sqrt(self.h) * self.base.residual(self.x, self.u, self.p)]
        if options.pace.time_weight:
            residuals.append(ca.sqrt(2 * options.pace.time_weight * self.h))
        if options.pace.rate_weight:
            residuals.append(ca.sqrt(options.pace.rate_weight / self.h) * self.grown)
        return ca.vertcat(*residuals)

    def path(self) -> tuple[ca.MX, Array]:
        """Return the base's rows, then `u - u_before - h rate` against both bounds."""
        base_rows, limits = self.base.path(self.x, self.u, self.p), self.base.path_bounds
        if self.options.pace.rates is None:
            return base_rows, limits
        slow, fast = self.options.pace.rates.T
        zero, free = np.zeros((len(slow), 1)), np.full((len(slow), 1), np.inf)
        finite_rates = np.isfinite(slow), np.isfinite(fast)
        rows, ends = [base_rows], [limits]
        for finite, rate, sides in (
            (finite_rates[0], slow, np.hstack([zero, free])),
            (finite_rates[1], fast, np.hstack([-free, zero])),
        ):
            which = np.flatnonzero(finite)
            if which.size:
                rows.append(self.grown[which.tolist()] - self.h * ca.DM(rate[which]))
                ends.append(sides[which])
        return ca.vertcat(*rows), np.vstack(ends)

    def end(self) -> tuple[ca.MX, Array]:
        """Return the base's rows, then those of a period."""
        base_rows, growth = self.base.end(self.x, self.p), self.options.growth
        if growth is None:
            return base_rows, self.base.end_bounds
        layout, first = self.layout, self.X[self.layout.start]
        finite = np.flatnonzero(np.isfinite(growth)).tolist()
        growth_error = (self.x - first[: layout.nx])[finite] - ca.DM(growth[finite])
        period_error = (layout.periodic_part(self.X) - first)[layout.nq :]
        rows = ca.vertcat(base_rows, growth_error, period_error)
        zero = np.zeros((rows.numel() - base_rows.numel(), 2))
        return rows, np.vstack([self.base.end_bounds, zero])


def _hard(penalties: Array | None, rows: int) -> Array | None:
    """Return penalties with hard rows below them."""
    if penalties is None:
        return None
    return np.vstack([penalties, np.full((rows - len(penalties), 2), np.inf)])


def _shares(counts: tuple[int, ...]) -> Array:
    """Return (N + 1, phases); the last sample belongs to the last phase."""
    rows = np.repeat(np.diag(1.0 / np.array(counts)), counts, axis=0)
    return np.vstack([rows, rows[-1:]])


def _later(layout: TrajectoryLayout, spans: Array) -> Array:
    """Return bounds of X below (q, v), from the second sample on."""
    free = np.tile([-np.inf, np.inf], (layout.size - layout.nx, 1))
    free[: layout.phases, 0] = INSIDE * spans[:, 0]
    return free


def _state(layout: TrajectoryLayout) -> ca.Function:
    """Return (q, v) → (X), durations and the rest zero."""
    q, v = ca.SX.sym("q", layout.nq), ca.SX.sym("v", layout.nv)
    rest = ca.SX.zeros(layout.size - layout.nx)
    return ca.Function("state", [q, v], [ca.vertcat(q, v, rest)], ["q", "v"], ["x"])
