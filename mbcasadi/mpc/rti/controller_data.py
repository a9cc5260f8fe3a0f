"""What is said of a real-time iteration: names and units of its signals, limits, setpoints."""

from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.description import Controller, LeastDistanceStages, ReportedLimits, Signal
from mbcasadi.mpc.lq.tick import stagewise_controller
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.stage_tuning import TUNING
from mbcasadi.mpc.rti.planned_motion import planned_motion
from mbcasadi.mpc.rti.stages import RtiStages
from mbcasadi.system.coordinates import controls

SAFE_OUTPUT = (
    "the control that the last plan has for this sample; without such a plan the last command "
    "while it is young, then each actuator holds"
)


def controller_data(
    function: ca.Function, stages: LeastDistanceStages, problem: RtiStages
) -> Controller:
    """Return the controller."""
    ocp = problem.ocp
    signals = _signals(problem)
    monitor, monitors = _setpoint_monitor(ocp)
    described = stagewise_controller(
        function,
        tuple(signals[key] for key in problem.memory.inputs()),
        Signal("u", ocp.names("u"), _units_of_controls(ocp)),
        problem.memory.hold.safe,
        problem.z0,
        {
            "law": "real-time iteration: one Gauss-Newton step of an optimal control problem",
            "horizon": _horizon_in_words(ocp),
            "delay": f"{problem.memory.delay} ticks, predicted with the pending controls",
            "safe output": SAFE_OUTPUT,
        },
        stages,
    )
    return replace(
        described,
        monitor=monitor,
        monitors=monitors,
        prediction=planned_motion(problem),
        prediction_rows=ocp.names("x"),
        delay=problem.memory.delay,
        tuning=ocp.tuning,
        limits=_limits(ocp, np.flatnonzero(np.isfinite(ocp.x_bounds).any(axis=1)).tolist()),
        unreported=() if monitors else ("tracking",),  # residuals alone have no desired value
        needs_double="the QP of a real-time iteration has squares of the horizon's sensitivities, "
        "which multiply float's rounding",
    )


def _horizon_in_words(ocp: OptimalControlProblem) -> str:
    if ocp.lengths is None:
        return f"{ocp.horizon} intervals of {ocp.period:g} s"
    least, most = ocp.lengths.min(), ocp.lengths.max()
    return f"{ocp.horizon} intervals of given lengths, usually {least:g} to {most:g} s"


def _units_of_controls(ocp: OptimalControlProblem) -> tuple[str, ...]:
    """Return the unit of each control; "" where the problem has no mechanism, or others."""
    units = () if ocp.system is None else controls(ocp.system).units
    return units if len(units) == ocp.nu else ("",) * ocp.nu


def _signals(problem: RtiStages) -> dict[str, Signal]:
    """Return names and units of the inputs."""
    ocp, N, memory = problem.ocp, problem.ocp.horizon, problem.memory
    x, u, units = ocp.names("x"), ocp.names("u"), ocp.labels.get("x_units", ("",) * ocp.nx)
    slots = [
        (f"{slot.name}.{name}", unit)
        for slot in ocp.slots
        if slot.name != TUNING
        for name, unit in zip(slot.components, slot.units, strict=True)
    ]
    tuning = [(entry.name, entry.unit) for entry in ocp.tuning]
    stored = [*u, *(slots[i][0] for i in memory.read)]
    z = [f"{name}[{k}]" for k in range(N + 1) for name in x]
    z += [f"{name}[{k}]" for k in range(N) for name in u]
    z += [f"pending.{name}[{k}]" for k in range(-memory.columns, 0) for name in stored]
    z += ["unsolved"]
    z += [f"active.{name}" for name in problem.row_names]
    z += memory.force.components
    z += [f"safe.{name}" for name in memory.hold.safe.components]
    z += [] if memory.moving is None else memory.moving.components
    nq, nv = ocp.state.numel_in("q"), ocp.state.numel_in("v")
    short_names = [name.split(".", 1)[-1] for name in x]
    return {
        "q": Signal("q", tuple(short_names[:nq]), units[:nq]),
        "v": Signal("v", tuple(short_names[nq : nq + nv]), units[nq : nq + nv]),
        "ref": Signal(
            "ref",
            tuple(f"{name}[{k}]" for k in range(N + 1) for name, _ in slots),
            tuple(unit for _, unit in slots) * (N + 1),
        ),
        TUNING: Signal(TUNING, tuple(x for x, _ in tuning), tuple(unit for _, unit in tuning)),
        "z": Signal("z", tuple(z), ("",) * len(z)),
    }


def _limits(ocp: OptimalControlProblem, states: list[int]) -> ReportedLimits | None:
    """Return bounded states, and rows of the path at the first sample's p; None without any.

    They are measured, so that the bounds of the given state hold.
    """
    count, soft = len(states) + len(ocp.path_bounds), _soft(ocp)
    if not count:
        return None
    names = [ocp.names("x")[i] for i in states] + list(ocp.names("path"))
    sizes = {"q": ocp.state.numel_in("q"), "v": ocp.state.numel_in("v")}
    sizes |= {"ref": ocp.n_ref * (ocp.horizon + 1)}
    sizes |= {TUNING: len(ocp.tuning)} if ocp.tuning else {}
    sizes |= {"u": ocp.nu, "u_last": ocp.nu}
    inputs = {key: ca.MX.sym(key, size) for key, size in sizes.items()}
    p = ca.vertcat(inputs["ref"][: ocp.n_ref], inputs.get(TUNING, ca.MX(0, 1)))
    x = ocp.state(*([inputs["q"], inputs["v"]] + [inputs["u_last"]] * ocp.has_rates))
    value = ca.vertcat(x[states], ocp.path(x, inputs["u"], p))
    bounds = np.vstack([ocp.x_bounds[states], ocp.first_path_bounds])
    return ReportedLimits(
        ca.Function("limits", [*inputs.values()], [ca.densify(value)], [*inputs], ["value"]),
        Signal("value", tuple(names), ("",) * count),
        bounds[:, 0],
        bounds[:, 1],
        (False,) * len(states) + tuple(bool(is_soft) for is_soft in soft),
    )


def _soft(ocp: OptimalControlProblem) -> Array:
    soft: Array = np.zeros(len(ocp.path_bounds), dtype=bool)
    if ocp.path_penalties is not None:
        soft[: len(ocp.path_penalties)] = np.isfinite(ocp.path_penalties).all(axis=1)
    return soft


def _setpoint_monitor(
    ocp: OptimalControlProblem,
) -> tuple[ca.Function | None, tuple[Signal, ...]]:
    """Return (q, ref) → (target, error), and the names of their rows.

    The target is the setpoint of the first sample, the moment at which the control acts. Nothing
    is returned where the problem has no setpoint.
    """
    if ocp.tracking is None:
        return None, ()
    q = ca.SX.sym("q", ocp.tracking.size1_in("q"))
    ref = ca.SX.sym("ref", ocp.n_ref * (ocp.horizon + 1))
    p = ca.vertcat(ref[: ocp.n_ref], ca.SX(ca.DM(ocp.tuned({}))))
    target, error = ocp.tracking(q, p)
    monitor = ca.Function("monitor", [q, ref], [target, error], ["q", "ref"], ["target", "error"])
    names, units = ocp.labels["tracked"], ocp.labels["tracked_units"]
    return monitor, tuple(Signal(name, names, units) for name in ("target", "error"))
