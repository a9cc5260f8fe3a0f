"""The bounded quantities of a linear MPC beside its controls, for reports and not for C."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.description import ReportedLimits, Signal
from mbcasadi.mpc.linear.prediction_model import Array
from mbcasadi.mpc.linear.problem import LinearProblem


def limits_of(problem: LinearProblem, state: str = "x0") -> ReportedLimits | None:
    """Return `u - u_last` and `C x + D u` with their finite bounds.

    Args:
        problem: gives the bounds.
        state: name of the controller's input that is x.
    """
    x, u = ca.SX.sym(state, problem.model.nx), ca.SX.sym("u", problem.model.nu)
    last = ca.SX.sym("u_last", problem.model.nu)
    rows = [
        (f"du{i}", u[i] - last[i], low, high, False)
        for i, (low, high) in enumerate(problem.du_bounds)
    ]
    for output in problem.outputs:
        y = ca.DM(output.C) @ x + ca.DM(output.D) @ u
        rows += [
            (name, y[i], output.lower[i], output.upper[i], output.soft)
            for i, name in enumerate(output.rows)
        ]
    bounded_rows = [row for row in rows if np.isfinite(row[2]) or np.isfinite(row[3])]
    if not bounded_rows:
        return None
    names, values, lower, upper, soft = zip(*bounded_rows, strict=True)
    value = ca.Function(
        "limits", [x, u, last], [ca.vertcat(*values)], [state, "u", "u_last"], ["value"]
    )
    signal = Signal("limited", names, ("",) * len(names))
    return ReportedLimits(value, signal, np.array(lower), np.array(upper), soft)


def limits_of_mechanism(
    limits: ReportedLimits | None,
    sizes: Mapping[str, int],
    deviation: Callable[[dict[str, ca.SX]], ca.SX],
    u_0: Array,
) -> ReportedLimits | None:
    """Return the limits over (q, v, u, u_last) of a mechanism.

    Args:
        limits: over deviations.
        sizes: of q and v.
        deviation: (q, v) → x.
        u_0: (nu,) control that holds the equilibrium.
    """
    if limits is None:
        return None
    inputs = {name: ca.SX.sym(name, sizes[name]) for name in ("q", "v", "act") if name in sizes}
    inputs |= {name: ca.SX.sym(name, limits.value.numel_in(name)) for name in ("u", "u_last")}
    x, (u, last) = deviation(inputs), (inputs[name] - ca.DM(u_0) for name in ("u", "u_last"))
    outputs = [limits.value(x, u, last)]
    value = ca.Function("limits", list(inputs.values()), outputs, list(inputs), ["value"])
    return replace(limits, value=value)
