"""A mechanism, or a whole optimal control problem, inside a rockit Ocp."""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.interop.continuous_dynamics import continuous_dynamics, neighbour, require_methods
from mbcasadi.interop.ocp_stages import parameters_of
from mbcasadi.mpc.integrators.step import require_horizon
from mbcasadi.mpc.integrators.step_options import DEFAULT_DYNAMICS, DynamicsOptions
from mbcasadi.mpc.ocp.constraints import end_rows, first_path_rows, path_rows
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.shapes import column
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values


class RockitProblem(NamedTuple):
    """A rockit Ocp with the motion in it, and its symbols.

    Attributes:
        ocp: the `rockit.Ocp`.
        q, v: (nq, 1), (nv, 1) states.
        u: (nu, 1) control, constant over an interval.
        mask: (nc, 1) parameter of each interval; None without a mask.
    """

    ocp: Any
    q: ca.MX
    v: ca.MX
    u: ca.MX
    mask: ca.MX | None


@checked
@at_model_values
def to_rockit(
    system: System,
    horizon: int,
    period: float,
    *,
    ocp: Any = None,
    dynamics: DynamicsOptions = DEFAULT_DYNAMICS,
) -> RockitProblem:
    """Return a rockit Ocp over `horizon` intervals with states q, v and their derivatives.

    The transcription is that of rockit: `ocp.method(...)` comes from the user.

    Args:
        system: the mechanism.
        horizon: number of intervals.
        period: length of one, s.
        ocp: an Ocp or stage to fill, with its own times; a new one by default.
        dynamics: how the acceleration is computed.

    Raises:
        MissingExtraError: rockit is not installed, and no Ocp was given.
        ProblemError: an invalid horizon or period, or activation states.
    """
    N = require_horizon(horizon)
    if not 0 < period < float("inf"):
        raise ProblemError(f"period = {period}; expected a positive number of seconds")
    motion = continuous_dynamics(system, dynamics)
    if ocp is None:
        ocp = neighbour("rockit", "pip install rockit-meco").Ocp(T=N * period)
    require_methods("ocp", ocp, ("state", "control", "set_der"), "a rockit Ocp or stage")
    q, v = ocp.state(system.nq), ocp.state(system.nv)
    u = ocp.control(system.nu) if system.nu else ca.MX(0, 1)
    mask = None if system.mask is None else ocp.parameter(system.nc, grid="control")
    p = ca.vertcat(
        ca.MX(0, 1), *([ocp.t] if system.timed else []), *([] if mask is None else [mask])
    )
    xdot = motion(ca.vertcat(q, v), u, p)
    ocp.set_der(q, xdot[: system.nq])
    ocp.set_der(v, xdot[system.nq :])
    if mask is not None:
        ocp.set_value(mask, np.tile(np.asarray(system.mask)[:, None], N))
    return RockitProblem(ocp, q, v, u, mask)


class RockitOfOcp(NamedTuple):
    """A rockit Ocp with a whole problem in it, in discrete time.

    Attributes:
        ocp: the `rockit.Ocp`, with cost and rows.
        x, u: (nx, 1), (nu, 1) state and control.
        slacks: (k, 1) of soft rows along the path, controls; None without soft rows.
        p: (np, 1) parameter of each sample, the last one among them; None without parameters.
    """

    ocp: Any
    x: ca.MX
    u: ca.MX
    slacks: ca.MX | None
    p: ca.MX | None


@checked
def ocp_to_rockit(
    problem: OptimalControlProblem,
    x0: ArrayLike,
    p: ArrayLike | None = None,
    *,
    ocp: Any = None,
) -> RockitOfOcp:
    """Return a rockit Ocp with steps, cost and all rows of a problem.

    `ocp.method(MultipleShooting(N=problem.horizon))` and the solver come from the user.

    Args:
        problem: to hand on.
        x0: (nx,) initial state.
        p: (N + 1, np) value of the parameters; nominal by default.
        ocp: an Ocp to fill, with its own times; a new one by default.

    Raises:
        MissingExtraError: rockit is not installed, and no Ocp was given.
        ShapeError: x0 or p of a wrong shape, or NaN.
        ProblemError: soft rows at the end, where rockit has no controls; something else as `ocp`.
    """
    start, values = column("x0", x0, problem.nx), parameters_of(problem, p)
    N, rows, last = problem.horizon, path_rows(problem), end_rows(problem)
    if last.k:
        raise ProblemError(
            f"{problem.name!r} has {last.k} soft rows at the end, where rockit has no slacks; "
            "expected hard ones, or use ocp_to_opti"
        )
    if ocp is None:
        ocp = neighbour("rockit", "pip install rockit-meco").Ocp(T=N * problem.period)
    require_methods("ocp", ocp, ("state", "control", "set_next"), "a rockit Ocp")
    x, u = ocp.state(problem.nx), ocp.control(problem.nu)
    e = ocp.control(rows.k) if rows.k else None
    parameter = None
    if problem.np_:
        parameter = ocp.parameter(problem.np_, grid="control", include_last=True)
        ocp.set_value(parameter, values.T)
    given = ca.MX(0, 1) if parameter is None else parameter
    ocp.set_next(x, problem.dynamics(x, u, given))
    cost, limited = ca.sumsqr(problem.residual(x, u, given)) / 2, problem.path(x, u, given)
    limited = ca.DM(rows.T) @ limited
    if e is not None:
        limited += ca.DM(rows.W) @ e
        cost += ca.dot(ca.DM(rows.linear), e) + ca.dot(ca.DM(rows.quadratic) * e, e) / 2
        _along(ocp, e, rows.e_bounds)
    ocp.add_objective(ocp.sum(cost))
    ocp.add_objective(ocp.at_tf(ca.sumsqr(problem.terminal(x, given)) / 2))
    ocp.subject_to(ocp.at_t0(x) == start)
    for row, span in _rows(ocp.at_t0(limited), first_path_rows(problem).bounds):
        ocp.subject_to(_within(row, span))
    if N > 1:
        for row, span in _rows(limited, rows.bounds):
            ocp.subject_to(_within(row, span), include_first=False, include_last=False)
    _along(ocp, u, problem.u_bounds)
    for row, span in _rows(x, problem.x_bounds):
        ocp.subject_to(_within(row, span), include_first=False, include_last=True)
    for row, span in _rows(ocp.at_tf(problem.end(x, given)), last.bounds):
        ocp.subject_to(_within(row, span))
    ocp.set_initial(x, start)
    return RockitOfOcp(ocp, x, u, e, parameter)


def _along(ocp: Any, values: ca.MX, bounds: Array) -> None:
    """Add rows of all intervals."""
    for row, span in _rows(values, bounds):
        ocp.subject_to(_within(row, span), include_last=False)


def _rows(values: ca.MX, bounds: Array) -> list[tuple[ca.MX, Array]]:
    """Return the entries that have bounds, with these."""
    return [(values[i], span) for i, span in enumerate(bounds) if np.isfinite(span).any()]


def _within(row: ca.MX, span: Array) -> ca.MX:
    """Return the comparison of a row with its bounds."""
    low, high = (float(bound) for bound in span)
    if low == high:
        return row == low
    if np.isfinite([low, high]).all():
        return (low <= row) <= high
    return row >= low if np.isfinite(low) else row <= high
