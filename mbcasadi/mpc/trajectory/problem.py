"""Optimal trajectories of a mechanism: durations, start and period are unknowns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.task import Task
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.integrators.step import free_step_fun, require_horizon
from mbcasadi.mpc.integrators.step_options import DEFAULT_STEP, StepOptions
from mbcasadi.mpc.ocp.collocation import MOST_POINTS
from mbcasadi.mpc.ocp.make_problem import optimal_control_problem
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.stage import Bounded, StageSymbols, stage_symbols
from mbcasadi.mpc.trajectory.durations import problem_with_durations
from mbcasadi.mpc.trajectory.initial_state import StartRows, start_rows
from mbcasadi.mpc.trajectory.layout import Layout, TrajectoryOptions
from mbcasadi.shapes import bounds, column, real_array
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values

UNUSED_STEP = StepOptions(order=1, newton=0)
"""Of the problem in (q, v), whose dynamics is replaced by that in X."""


@summarised
@dataclass(frozen=True)
class TrajectoryProblem:
    """A problem whose durations are unknowns; see `trajectory_problem`.

    Attributes:
        system: the mechanism.
        ocp: the problem in X; `ocp.parameters` gives p.
        layout: of X.
        start: rows of the first sample.
        options: durations, weights, growth.
        step: (q, v, u, [mask], h) → (q_next, v_next).
    """

    system: System
    ocp: OptimalControlProblem
    layout: Layout
    start: StartRows
    options: TrajectoryOptions
    step: ca.Function

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.ocp.name,
            "horizon": self.ocp.horizon,
            "system": self.system.name,
            "phases": self.layout.phases,
        }

    @property
    def limits(self) -> Array:
        """(nu, 2) bounds of the controls."""
        return self.ocp.u_bounds[: self.layout.nu]

    @checked
    def lengths(self, durations: Array) -> Array:
        """Return h (N,) of each interval, s."""
        counts = np.array(self.options.counts)
        return np.repeat(durations / counts, counts)


@checked
@at_model_values
def trajectory_problem(
    system: System,
    horizon: int,
    duration: ArrayLike,
    *,
    phases: Sequence[int] | None = None,
    time_weight: float = 0.0,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    start: Sequence[Bounded] = (),
    periodic: ArrayLike | None = None,
    near: ArrayLike | None = None,
    symbols: StageSymbols | None = None,
    Q: ArrayLike | None = None,
    R: ArrayLike | None = None,
    Q_end: ArrayLike | None = None,
    tasks: Sequence[Task] = (),
    residual: ca.SX | None = None,
    terminal: ca.SX | None = None,
    path: Sequence[Bounded] = (),
    end: Sequence[Bounded] = (),
    u_bounds: ArrayLike | None = None,
    q_bounds: ArrayLike | None = None,
    v_bounds: ArrayLike | None = None,
    closing: float | None = None,
    not_below: Mapping[str, int] = MappingProxyType({}),
    u_rates: ArrayLike | None = None,
    rate_weight: float = 0.0,
    points: int = 0,
    name: str = "trajectory",
    step: StepOptions = DEFAULT_STEP,
) -> TrajectoryProblem:
    """Return the problem of an optimal trajectory, with durations and start among its unknowns.

        min  Σ_i w T_i + Σ_k h_k ½ ‖r(x_k, u_k)‖² + ½ ‖r_N(x_N)‖²,   h_k = T_i / N_i,
        s.t. x_{k+1} = step of length h_k on the constraint manifold,  T_min <= T_i <= T_max,
             start rows at x_0,  path rows and bounds,  end rows at x_N,
             q_N - q_0 = growth and v_N = v_0 of a periodic motion.

    N_i intervals of equal length are phase i. Durations are part of the state, as constants of the
    motion; so are the start of a periodic one, and the control before where its rate enters:
    `X = (q, v, T, [u_before], [start])`. Every solver of shooting problems accepts the result.

    Args:
        system: the mechanism.
        horizon: number of intervals N.
        duration: (2,) bounds of T, or (phases, 2), s; equal ends fix it.
        phases: number of intervals of each phase, N in all; one phase by default.
        time_weight: w, cost of a second.
        q0, v0: (nq,), (nv,) start on the manifold; free where it is not given. Without `q0`,
            `v0` can only be zero.
        start: rows of q and v at the first sample; closure rows are added where q is free, but not
            of rows that a mask switches: `closing` holds those that it closes there.
        periodic: (nq,) growth of each coordinate in a period (zero, or 2π of a crank), NaN where
            the loops determine it: give numbers for as many coordinates as there are freedoms, or
            for all. v returns to its first value.
        near: (nq,) pose near the start, where closure rows are chosen; the authored one by default.
        symbols: those of all expressions; see `stage_symbols`.
        Q, R, Q_end, tasks, residual, terminal: costs, as in `optimal_control_problem`. Changes of
            the control have `u_rates` and `rate_weight` in place of its du_bounds and S, which
            count intervals.
        path, end, u_bounds, q_bounds, v_bounds, closing, not_below: as in
            `optimal_control_problem`;
            `pin_independent_coordinates` gives end rows of a state.
        u_rates: (nu, 2) bounds of du/dt, 1/s; u_0 is free but for a periodic motion.
        rate_weight: of `½ |du/dt|²`, per second.
        points: s, number of Gauss points in each interval, for collocation of order 2 s in place of
            shooting: stiff motion permits long intervals. Their rates become unknowns after u.
        name: a C identifier.
        step: options of the integrator: `StepOptions(order=, substeps=, newton=, ...)`.

    Raises:
        ProblemError: an invalid horizon, duration, phase or weight, no cost; constraints that
            depend on time; more start rows than coordinates.
        ShapeError: a wrong shape, or NaN.
    """
    variables = stage_symbols(system) if symbols is None else symbols
    spans, counts = _durations(duration, horizon, phases)
    weights = {"time_weight": time_weight, "rate_weight": rate_weight}
    _check(system, weights, points, q0, v0)
    if residual is None and any(weights.values()):
        residual = ca.SX(0, 1)
    base = optimal_control_problem(
        system,
        horizon,
        1.0,  # residuals are those per second, and the dynamics is not used
        Q=Q,
        R=R,
        Q_end=Q_end,
        tasks=tasks,
        symbols=variables,
        residual=residual,
        terminal=terminal,
        path=path,
        end=end,
        u_bounds=u_bounds,
        q_bounds=q_bounds,
        v_bounds=v_bounds,
        closing=closing,
        not_below=not_below,
        name=name,
        step=UNUSED_STEP,
    )
    growth = None if periodic is None else _growth(periodic, system)
    rates = None if u_rates is None else bounds("u_rates", u_rates, system.nu)
    has_rates = rates is not None or rate_weight > 0
    options = TrajectoryOptions(counts, spans, time_weight, rate_weight, rates, growth, points)
    layout = Layout(system.nq, system.nv, system.nu, len(counts), has_rates, growth is not None)
    initial = start_rows(system, variables, layout, options, (q0, v0), start, near)
    single = free_step_fun(system, step)
    ocp = problem_with_durations(base, layout, system, single, options)
    return TrajectoryProblem(system, ocp, layout, initial, options, single)


def _durations(
    duration: ArrayLike, horizon: int, phases: Sequence[int] | None
) -> tuple[Array, tuple[int, ...]]:
    """Return bounds (phases, 2) and numbers of intervals."""
    N = require_horizon(horizon)
    counts = (N,) if phases is None else tuple(int(n) for n in phases)
    if sum(counts) != horizon or min(counts, default=0) < 1:
        raise ProblemError(
            f"phases of {counts} intervals; expected at least one each, {horizon} in all, the "
            "horizon"
        )
    spans = np.atleast_2d(real_array("duration", duration))
    if spans.shape != (len(counts), 2):
        raise ShapeError(
            f"duration has shape {np.shape(duration)}, expected bounds (2,), or "
            f"({len(counts)}, 2), a row for each phase"
        )
    low, high = spans.T
    if not (np.all(low > 0) and np.all(low <= high) and np.all(np.isfinite(high))):
        raise ProblemError(
            f"duration {spans.tolist()}; expected 0 < T_min <= T_max, finite, in seconds"
        )
    return spans, counts


def _growth(periodic: ArrayLike, system: System) -> Array:
    growth = column("periodic", periodic, system.nq, finite=False)
    if np.any(np.isinf(growth)) or np.all(np.isnan(growth)):
        raise ProblemError(
            f"periodic = {growth}; expected a finite growth of at least one coordinate, NaN for "
            "those that the loops carry along"
        )
    return growth


def _check(
    system: System,
    weights: Mapping[str, float],
    points: int,
    q0: ArrayLike | None,
    v0: ArrayLike | None,
) -> None:
    for label, weight in weights.items():
        if not 0 <= weight < np.inf:
            raise ProblemError(f"{label} = {weight}; expected a finite weight, at least 0")
    if not 0 <= points <= MOST_POINTS or (points and system.mask is not None):
        raise ProblemError(
            f"points = {points}; expected 0 to {MOST_POINTS}, and 0 for rows that a mask switches"
        )
    if system.timed:
        raise ProblemError(
            f"constraints of '{system.name}' move with a clock, and durations are unknown here; "
            "expected constraints without time"
        )
    if q0 is None and v0 is not None and np.any(np.asarray(v0) != 0):
        raise ProblemError("v0 without q0: only rest is admissible in every pose; give q0 too")
