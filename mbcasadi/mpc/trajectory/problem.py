"""Optimal trajectories of a mechanism: durations, start and period are unknowns."""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.integrators.step import free_step_fun, require_horizon
from mbcasadi.mpc.integrators.step_options import DEFAULT_STEP, StepOptions
from mbcasadi.mpc.ocp.collocation import MOST_POINTS
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.make_problem import ProblemPart, optimal_control_problem
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.stage import StageSymbols, stage_symbols
from mbcasadi.mpc.ocp.stage_part import StagePart
from mbcasadi.mpc.trajectory.durations import problem_with_durations
from mbcasadi.mpc.trajectory.initial_state import FREE_START, Start, StartRows, start_rows
from mbcasadi.mpc.trajectory.layout import Pace, TrajectoryLayout, TrajectoryOptions, TrajectoryPart
from mbcasadi.shapes import column, real_array
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
    layout: TrajectoryLayout
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
    horizon: int | Sequence[int],
    duration: ArrayLike,
    parts: Sequence[ProblemPart | TrajectoryPart],
    *,
    start: Start = FREE_START,
    points: int = 0,
    symbols: StageSymbols | None = None,
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
        horizon: number of intervals N, or of those of each phase.
        duration: (2,) bounds of T, or (phases, 2), s; equal ends fix it.
        parts: as in `optimal_control_problem`, and `TimeCost`, `ControlRate` in place of changes
            of the control, which count intervals. `pin_independent_coordinates` gives rows of a
            state at the end.
        start: what the first sample keeps.
        points: s, number of Gauss points in each interval, for collocation of order 2 s in place of
            shooting: stiff motion permits long intervals. Their rates become unknowns after u.
        symbols: those of all expressions; see `stage_symbols`.
        step: options of the integrator: `StepOptions(order=, substeps=, newton=, ...)`.

    Raises:
        ProblemError: an invalid horizon, duration, phase or weight, no cost; constraints that
            depend on time; more start rows than coordinates; changes of the control.
        ShapeError: a wrong shape, or NaN.
    """
    variables = stage_symbols(system) if symbols is None else symbols
    counts = (horizon,) if isinstance(horizon, int) else tuple(horizon)
    spans = _durations(duration, counts)
    _check(system, points, start)
    pace = Pace.of([part for part in parts if isinstance(part, TrajectoryPart)], system)
    own = [part for part in parts if not isinstance(part, TrajectoryPart)]
    if any(isinstance(part, StagePart) and part.has_changes for part in own):
        raise ProblemError(
            "changes of the control between intervals of unknown length; expected ControlRate in "
            "place of S and du"
        )
    if pace.costs:
        own.append(Cost(residual=ca.SX(0, 1)))
    base = optimal_control_problem(
        system,
        sum(counts),
        1.0,  # residuals are those per second, and the dynamics is not used
        own,
        symbols=variables,
        step=UNUSED_STEP,
        name="trajectory",
    )
    growth = None if start.periodic is None else _growth(start.periodic, system)
    options = TrajectoryOptions(counts, spans, pace, growth, points)
    layout = TrajectoryLayout(
        system.nq, system.nv, system.nu, len(counts), pace.has_rates, growth is not None
    )
    initial = start_rows(system, variables, layout, options, start)
    single = free_step_fun(system, step)
    ocp = problem_with_durations(base, layout, system, single, options)
    return TrajectoryProblem(system, ocp, layout, initial, options, single)


def _durations(duration: ArrayLike, counts: Sequence[int]) -> Array:
    """Return bounds (phases, 2)."""
    for n in counts:
        require_horizon(n)
    spans = np.atleast_2d(real_array("duration", duration))
    if not counts or spans.shape != (len(counts), 2):
        raise ShapeError(
            f"duration has shape {np.shape(duration)}, expected bounds (2,), or "
            f"({len(counts)}, 2), a row for each phase"
        )
    low, high = spans.T
    if not (np.all(low > 0) and np.all(low <= high) and np.all(np.isfinite(high))):
        raise ProblemError(
            f"duration {spans.tolist()}; expected 0 < T_min <= T_max, finite, in seconds"
        )
    return spans


def _growth(periodic: ArrayLike, system: System) -> Array:
    growth = column("periodic", periodic, system.nq, finite=False)
    if np.any(np.isinf(growth)) or np.all(np.isnan(growth)):
        raise ProblemError(
            f"periodic = {growth}; expected a finite growth of at least one coordinate, NaN for "
            "those that the loops carry along"
        )
    return growth


def _check(system: System, points: int, start: Start) -> None:
    if not 0 <= points <= MOST_POINTS or (points and system.mask is not None):
        raise ProblemError(
            f"points = {points}; expected 0 to {MOST_POINTS}, and 0 for rows that a mask switches"
        )
    if system.timed:
        raise ProblemError(
            f"constraints of '{system.name}' move with a clock, and durations are unknown here; "
            "expected constraints without time"
        )
    if start.q0 is None and start.v0 is not None and np.any(np.asarray(start.v0) != 0):
        raise ProblemError("v0 without q0: only rest is admissible in every pose; give q0 too")
