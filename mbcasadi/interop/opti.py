"""The motion of a mechanism, or a whole optimal control problem, inside CasADi's Opti."""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.interop.ocp_stages import parameters_of
from mbcasadi.mpc.integrators.step import discrete_dynamics, require_horizon
from mbcasadi.mpc.integrators.step_options import DEFAULT_STEP, StepOptions
from mbcasadi.mpc.ocp.constraints import end_rows, first_path_rows, path_rows
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.solution import rollout
from mbcasadi.shapes import column
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values


@summarised
class OptiProblem(NamedTuple):
    """An Opti with the motion in it, and its symbols; the user adds the cost.

    Attributes:
        opti: the `ca.Opti`.
        x: (nx, N + 1) states (q, v).
        u: (nu, N) controls.
        x0: (nx, 1) parameter, initial state.
        p: (np, N) parameter, ([t], [mask]) of each interval.
    """

    opti: ca.Opti
    x: ca.MX
    u: ca.MX
    x0: ca.MX
    p: ca.MX


@checked
@at_model_values
def to_opti(
    system: System,
    horizon: int,
    period: float,
    q0: ArrayLike,
    v0: ArrayLike | None = None,
    *,
    step: StepOptions = DEFAULT_STEP,
) -> OptiProblem:
    """Return an Opti with `x_{k+1} = F(x_k, u_k)`, `x_0` and the ranges of controls as its rows.

    Loops are not rows: F ends on the manifold, so such rows would be redundant.

    Args:
        system: the mechanism.
        horizon: number of intervals N.
        period: length of one, s.
        q0, v0: (nq,), (nv,) value of `x0` and first guess of all states; at rest by default.
        step: options of the integrator (`order`, `substeps`, `newton`, ...).

    Raises:
        ProblemError: an invalid horizon or period, or activation states.
        ShapeError: q0 or v0 of a wrong shape, or NaN.
    """
    N = require_horizon(horizon)
    single = discrete_dynamics(system, period, step)
    q = column("q0", q0, system.nq)
    v = np.zeros(system.nv) if v0 is None else column("v0", v0, system.nv)
    opti = ca.Opti()
    x, u = opti.variable(system.nq + system.nv, N + 1), opti.variable(system.nu, N)
    x0 = opti.parameter(system.nq + system.nv)
    p = opti.parameter(single.size1_in("p"), N)
    opti.subject_to(x[:, 0] == x0)
    for k in range(N):
        opti.subject_to(x[:, k + 1] == single(x[:, k], u[:, k], p[:, k]))
    for i, (low, high) in enumerate(system.limits.ctrl):
        if np.isfinite([low, high]).any():
            opti.subject_to(opti.bounded(low, u[i, :], high))
    opti.set_value(x0, np.concatenate([q, v]))
    opti.set_initial(x, np.tile(np.concatenate([q, v])[:, None], N + 1))
    if p.numel():
        times = [period * np.arange(N)[None]] if system.timed else []
        masks = [] if system.mask is None else [np.tile(system.mask[:, None], N)]
        opti.set_value(p, np.vstack([*times, *masks]))
    return OptiProblem(opti, x, u, x0, p)


@summarised
class OptiOfOcp(NamedTuple):
    """An Opti with a whole problem in it; the user chooses the solver.

    Attributes:
        opti: the `ca.Opti`, with cost and rows.
        x: (nx, N + 1) states.
        u: (nu, N) controls.
        slacks: (k, N) of soft rows along the path.
        end_slacks: (k,) of soft rows at the end.
        x0: (nx,) parameter, initial state.
        p: (np, N + 1) parameter.
    """

    opti: ca.Opti
    x: ca.MX
    u: ca.MX
    slacks: ca.MX
    end_slacks: ca.MX
    x0: ca.MX
    p: ca.MX


@checked
def ocp_to_opti(ocp: OptimalControlProblem, x0: ArrayLike, p: ArrayLike | None = None) -> OptiOfOcp:
    """Return an Opti with the cost and all rows of a problem, soft ones with slacks.

    It is the program of `solve_ocp`, row for row. The first guess is the motion from x0 without
    control.

    Args:
        ocp: the problem.
        x0: (nx,) value of the initial state.
        p: (N + 1, np) value of the parameters; nominal by default.

    Raises:
        ShapeError: x0 or p of a wrong shape, or NaN.
    """
    start, values = column("x0", x0, ocp.nx), parameters_of(ocp, p)
    N, rows, last = ocp.horizon, path_rows(ocp), end_rows(ocp)
    opti = ca.Opti()
    x, u = opti.variable(ocp.nx, N + 1), opti.variable(ocp.nu, N)
    e = opti.variable(rows.k, N) if rows.k else ca.MX(0, N)
    e_end = opti.variable(last.k) if last.k else ca.MX(0, 1)
    x_first, P = opti.parameter(ocp.nx), ca.MX(0, N + 1)
    if ocp.np_:
        P = opti.parameter(ocp.np_, N + 1)
        opti.set_value(P, values.T)
    cost = ca.sumsqr(ocp.terminal(x[:, N], P[:, N])) / 2
    opti.subject_to(x[:, 0] == x_first)
    for k in range(N):
        stage = x[:, k], u[:, k], P[:, k]
        opti.subject_to(x[:, k + 1] == ocp.dynamics(*stage))
        limits = (first_path_rows(ocp) if k == 0 else rows).bounds
        _bound(opti, ca.DM(rows.T) @ ocp.path(*stage) + ca.DM(rows.W) @ e[:, k], limits)
        _bound(opti, u[:, k], ocp.u_bounds)
        _bound(opti, x[:, k + 1], ocp.x_bounds)
        _bound(opti, e[:, k], rows.e_bounds)
        price = ca.dot(ca.DM(rows.linear), e[:, k]) + _half(rows.quadratic, e[:, k])
        cost += ca.sumsqr(ocp.residual(*stage)) / 2 + price
    end = ca.DM(last.T) @ ocp.end(x[:, N], P[:, N]) + ca.DM(last.W) @ e_end
    _bound(opti, end, last.bounds)
    _bound(opti, e_end, last.e_bounds)
    opti.minimize(cost + ca.dot(ca.DM(last.linear), e_end) + _half(last.quadratic, e_end))
    opti.set_value(x_first, start)
    guess = rollout(ocp, start, values)
    opti.set_initial(x, guess.x.T)
    opti.set_initial(u, guess.u.T)
    return OptiOfOcp(opti, x, u, e, e_end, x_first, P)


def _half(weights: Array, values: ca.MX) -> ca.MX:
    """Return `½ Σ w y²`."""
    return ca.dot(ca.DM(weights) * values, values) / 2


def _bound(opti: ca.Opti, values: ca.MX, bounds: Array) -> None:
    """Add rows for the entries that have bounds; equal ones are an equality."""
    for i, (low, high) in enumerate(bounds):
        if low == high:
            opti.subject_to(values[i] == low)
        elif np.isfinite([low, high]).any():
            opti.subject_to(opti.bounded(low, values[i], high))
