"""The distance of a real-time iteration from its setpoint, for reports and not for C."""

import casadi as ca

from mbcasadi.description import Signal
from mbcasadi.mpc.ocp.problem import OptimalControlProblem


def setpoint_monitor(
    ocp: OptimalControlProblem,
) -> tuple[ca.Function | None, tuple[Signal, ...]]:
    """Return (q, ref) → (target, error), and the names of their rows.

    The target is the setpoint of the first sample, the moment at which the control acts. Nothing
    is returned where the problem has no setpoint.
    """
    if ocp.tracking is None:
        return None, ()
    q = ca.SX.sym("q", ocp.tracking.size1_in("q"))
    ref = ca.SX.sym("ref", ocp.np_ * (ocp.horizon + 1))
    target, error = ocp.tracking(q, ref[: ocp.np_])
    monitor = ca.Function("monitor", [q, ref], [target, error], ["q", "ref"], ["target", "error"])
    names, units = ocp.labels["tracked"], ocp.labels["tracked_units"]
    return monitor, tuple(Signal(name, names, units) for name in ("target", "error"))
