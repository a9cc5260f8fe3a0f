"""The distance of a real-time iteration from its setpoint, for reports and not for C."""

import casadi as ca

from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.description import Signal
from mbcasadi.mpc.ocp.problem import OptimalControlProblem


def setpoint_monitor(
    ocp: OptimalControlProblem,
) -> tuple[ca.Function | None, tuple[Signal, ...]]:
    """Return (q, ref) → (target, error = target - q), and the names of their rows.

    The target is the setpoint of the first sample, the moment at which the control acts. Nothing
    is returned where the problem has no setpoint, or where q holds quaternions, whose difference
    is no error.
    """
    nq, nv = ocp.state.numel_in("q"), ocp.state.numel_in("v")
    place = slot_slices(ocp.slots).get("setpoint.q")
    if place is None or nq != nv:
        return None, ()
    q, ref = ca.SX.sym("q", nq), ca.SX.sym("ref", ocp.np_ * (ocp.horizon + 1))
    target = ref[place, 0]
    monitor = ca.Function(
        "monitor", [q, ref], [target, target - q], ["q", "ref"], ["target", "error"]
    )
    names = tuple(name.removeprefix("q.") for name in ocp.names("x")[:nq])
    units = tuple(ocp.labels.get("x_units", ("",) * ocp.nx)[:nq])
    return monitor, tuple(Signal(name, names, units) for name in ("target", "error"))
