"""The safe output of linear MPC after bad input: see `control/safe_output/safe_output.py`.

Commands are those of the linear problem, so they are deviations where it has an equilibrium.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.control.law_interface.fallback import hold_at
from mbcasadi.control.safe_output.holding_command import motors_of
from mbcasadi.control.safe_output.safe_output import SafeOutput
from mbcasadi.mpc.linear.prediction_model import Array
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.system import System, evaluate


class Hold(NamedTuple):
    """The safe output, and (q, v) → load and own (2 nu,) of a mechanism; None without one."""

    safe: SafeOutput
    command: ca.Function | None


def hold_of_mechanism(system: System, problem: LinearProblem, u_0: Array, q_0: Array) -> Hold:
    """Return the hold of a mechanism near an equilibrium.

    Args:
        system: the mechanism; all its rows are on.
        problem: in deviations.
        u_0, q_0: (nu,), (nq,) of the equilibrium, which is the pose before the first measurement.
    """
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    rows = ca.SX(0, system.nv)
    if system.nc:
        rows = ca.SX(evaluate(system.loop_jacobian, {"q": q, "v": v}))
    period = problem.model.period
    column = hold_at(system, q, v, rows, period) - np.append(u_0, np.zeros(system.nu))
    command = ca.Function("hold", [q, v], [ca.densify(column)], ["q", "v"], ["hold"], {"cse": True})
    start = np.asarray(command(q_0, np.zeros(system.nv))).ravel()
    return Hold(_safe_output(problem, system.actuator_names, motors_of(system), start), command)


def hold_of_states(problem: LinearProblem) -> Hold:
    """Return the hold of a plain linear model: no actuator is known, so its control is zero."""
    nu = problem.model.nu
    names = tuple(f"u{i}" for i in range(nu))
    return Hold(_safe_output(problem, names, np.ones(nu), np.zeros(2 * nu)), None)


def _safe_output(
    problem: LinearProblem, names: tuple[str, ...], motors: Array, start: Array
) -> SafeOutput:
    return SafeOutput(
        kind="safe",
        names=names,
        u_min=problem.u_bounds[:, 0],
        u_max=problem.u_bounds[:, 1],
        motors=motors,
        start=np.where(np.isfinite(start), start, 0.0),
        period=problem.model.period,
    )
