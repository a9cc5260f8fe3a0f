"""A trajectory as the reference of a law that tracks it.

An MPC uses a window of setpoints that moves with time; a trajectory LQR uses samples one period
apart. Between samples the trajectory is a step of its own integrator, so the reference is on
the manifold; a control that changes within a tick enters with its mean.
"""

from collections.abc import Callable

import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.control.regulators.time_varying import linearize_along
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.problem import OptimalControlProblem
from mbcasadi.mpc.ocp.solution import OcpSolution, initial_guess
from mbcasadi.mpc.trajectory.solution import TrajectorySolution
from mbcasadi.shapes import require_positive, require_whole

SETPOINTS = ("setpoint.q", "setpoint.v", "setpoint.u")


@checked
def reference_from_trajectory(
    solution: TrajectorySolution,
    ocp: OptimalControlProblem,
    *,
    beyond: str = "hold",
    delay: int = 0,
    start: float = 0.0,
) -> Callable[[float], Array]:
    """Return t → ref, the setpoints of all samples of a real-time iteration that begins at t.

    Args:
        solution: the trajectory to track.
        ocp: problem of the iteration, with Q, R or Q_end, which give it setpoints.
        beyond: after the end, "hold" or "repeat"; see `TrajectorySolution.at`.
        delay: ticks from a measurement to the moment when its control acts, as in the law: its
            first sample is that moment.
        start: s, beginning of the motion; the first sample is held before.

    Raises:
        ProblemError: a problem without setpoints; a delay that is no whole number of ticks.
    """
    _require_setpoints(ocp)
    require_whole(0, delay=delay)
    ahead: Array = ocp.times + delay * ocp.period

    def reference(t: float) -> Array:
        p = _window(solution, ocp, t - start + ahead, beyond)
        return np.asarray(p.ravel())

    return reference


@checked
def tracking_guess(
    solution: TrajectorySolution,
    ocp: OptimalControlProblem,
    *,
    t: float = 0.0,
    beyond: str = "hold",
) -> OcpSolution:
    """Return the window of the trajectory from t on as the first guess of an iteration.

    Args:
        solution: the trajectory to track.
        ocp: problem of the iteration.
        t: s, time of the first sample.
        beyond: after the end, "hold" or "repeat"; see `TrajectorySolution.at`.
    """
    times: Array = t + ocp.times
    q, v, _ = solution.at(times, beyond)
    u = mean_controls(solution, times, _lengths(ocp), beyond)
    x = np.hstack([q, v])
    if ocp.nx > x.shape[1]:  # the control before is part of the state
        x = np.hstack([x, np.vstack([u[:1], u[:-1]])])
    return initial_guess(ocp, x, u[:-1])


@checked
def linearize_trajectory(
    solution: TrajectorySolution, period: float, laps: int = 1
) -> tuple[Linearization, ...]:
    """Return the linear systems along the trajectory, one period apart, for `trajectory_lqr`.

    The last sample is the first one at the end or after it, where the motion rests or is repeated;
    of a motion that ends at speed, the last one within it.

    Args:
        solution: the trajectory to track.
        period: of the law, s.
        laps: number of repetitions of a periodic motion.

    Raises:
        ProblemError: as `linearize_along`; laps of a motion that is not periodic.
    """
    require_positive(period=period, laps=laps)
    beyond = "repeat" if solution.problem.layout.periodic else "hold"
    if laps != 1 and beyond == "hold":
        raise ProblemError(f"laps = {laps} of a trajectory that is not periodic; expected one")
    count = laps * solution.t[-1] / period
    moving = beyond == "hold" and np.abs(solution.v[-1]).max() > AT_REST
    ticks = int(np.floor(count + CLOSE) if moving else np.ceil(count - CLOSE))
    times: Array = period * np.arange(ticks + 1, dtype=np.float64)
    q, v, _ = solution.at(times, beyond)
    u = mean_controls(solution, times, period, beyond)
    return linearize_along(solution.problem.system, q, v, u)


CLOSE = 1e-9
"""Share of a period by which the end may be exceeded."""

AT_REST = 1e-6
"""Rad/s or m/s of an end that counts as rest."""


def mean_controls(
    solution: TrajectorySolution, times: Array, period: float | Array, beyond: str
) -> Array:
    """Return (n, nu) the mean control over the period that begins at each time.

    Args:
        solution: the trajectory.
        times: (n,) s.
        period: one of all, or (n,), s.
        beyond: after the end, "hold" or "repeat"; see `TrajectorySolution.at`.
    """
    end = solution.t[-1]
    steps = np.diff(solution.t)[:, None]
    u = np.clip(solution.u, *solution.problem.limits.T)
    total = np.vstack([np.zeros(u.shape[1]), np.cumsum(steps * u, axis=0)])
    exceeds_end = beyond == "hold" and bool(np.any(times + period > end))
    rest = solution.rest_control if exceeds_end else np.zeros(u.shape[1])

    def integral_until(t: Array) -> Array:
        turns = np.floor(t / end) if beyond == "repeat" else np.zeros_like(t)
        within = t - turns * end
        inside = [np.interp(within, solution.t, column) for column in total.T]
        past = np.maximum(within - end, 0.0)
        return np.asarray(
            np.column_stack(inside) + np.outer(turns, total[-1]) + np.outer(past, rest)
        )

    each = np.reshape(period, (-1, 1))
    return np.asarray((integral_until(times + period) - integral_until(times)) / each)


def _lengths(ocp: OptimalControlProblem) -> float | Array:
    """Return the length of the interval behind each sample, the last one repeated; or of all."""
    return ocp.period if ocp.lengths is None else np.append(ocp.lengths, ocp.lengths[-1])


def _window(
    solution: TrajectorySolution, ocp: OptimalControlProblem, times: Array, beyond: str
) -> Array:
    inside = np.maximum(times, 0.0)
    q, v, _ = solution.at(inside, beyond)
    u = mean_controls(solution, inside, _lengths(ocp), beyond)
    v = np.where((times >= 0)[:, None], v, 0.0)
    return ocp.parameters(setpoint_q=q, setpoint_v=v, setpoint_u=u)


def _require_setpoints(ocp: OptimalControlProblem) -> None:
    missing = [name for name in SETPOINTS if name not in slot_slices(ocp.slots)]
    if missing:
        raise ProblemError(
            f"'{ocp.name}' has no {', '.join(missing)}; expected a problem with Q, R or Q_end, "
            "whose setpoints the trajectory fills"
        )
