"""A real-time iteration as data: names, its plan, and its bounded quantities."""

import casadi as ca
import numpy as np

from mbcasadi.description import Controller, LeastDistanceStages, Limits, Signal
from mbcasadi.description.status import QP_STATUS
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.rti.monitor import setpoint_monitor
from mbcasadi.mpc.rti.stages import RtiStages
from mbcasadi.qp.kkt_residuals import QP_RESIDUALS

SAFE_OUTPUT = "the control planned for this sample, clipped to its limits"


def controller_data(
    function: ca.Function, stages: LeastDistanceStages, made: RtiStages
) -> Controller:
    """Return the controller."""
    ocp, low_high = made.ocp, made.ocp.u_bounds
    signals = _signals(made)
    monitor, monitors = setpoint_monitor(ocp)
    return Controller(
        name=function.name(),
        function=function,
        inputs=tuple(signals[key] for key in ("q", "v", "ref", "z")),
        outputs=(
            Signal("u", ocp.names("u"), ("",) * ocp.nu),
            Signal("z_next", signals["z"].components, signals["z"].units),
            Signal("status", ("status",), ("",)),
            Signal("flags", ("flags",), ("",)),
            Signal("residual", QP_RESIDUALS, ("",) * len(QP_RESIDUALS)),
        ),
        u_min=low_high[:, 0],
        u_max=low_high[:, 1],
        z0=made.z0,
        period=ocp.period,
        stages=stages,
        notes={
            "law": "real-time iteration: one Gauss-Newton step of an optimal control problem",
            "horizon": f"{ocp.horizon} intervals of {ocp.period:g} s",
            "delay": f"{made.memory.delay} ticks, predicted with the controls under way",
            "unknowns, rows": f"{stages.n}, {stages.m}",
            "status": QP_STATUS.summary(SAFE_OUTPUT),
        },
        monitor=monitor,
        monitors=monitors,
        prediction=_prediction(made),
        prediction_rows=ocp.names("x"),
        delay=made.memory.delay,
        limits=_limits(ocp, made.rows.states),
    )


def _signals(made: RtiStages) -> dict[str, Signal]:
    """Return names and units of the inputs."""
    ocp, N, memory = made.ocp, made.ocp.horizon, made.memory
    x, u, units = ocp.names("x"), ocp.names("u"), ocp.labels.get("x_units", ("",) * ocp.nx)
    slots = [
        (f"{slot.name}.{one}", unit)
        for slot in ocp.slots
        for one, unit in zip(slot.components, slot.units, strict=True)
    ]
    held = [*u, *(slots[i][0] for i in memory.read)]
    z = [f"{one}[{k}]" for k in range(N + 1) for one in x]
    z += [f"{one}[{k}]" for k in range(N) for one in u]
    z += [f"sent.{one}[{k}]" for k in range(-memory.columns, 0) for one in held]
    z += [f"active.{one}" for one in made.rows.names]
    nq, nv = ocp.state.numel_in("q"), ocp.state.numel_in("v")
    plain = [name.split(".", 1)[-1] for name in x]
    return {
        "q": Signal("q", tuple(plain[:nq]), units[:nq]),
        "v": Signal("v", tuple(plain[nq : nq + nv]), units[nq : nq + nv]),
        "ref": Signal(
            "ref",
            tuple(f"{one}[{k}]" for k in range(N + 1) for one, _ in slots),
            tuple(unit for _, unit in slots) * (N + 1),
        ),
        "z": Signal("z", tuple(z), ("",) * len(z)),
    }


def _prediction(made: RtiStages) -> ca.Function:
    """Return (q, v, ref, z, z_next, u) → (x, u): the plan of a tick with these outputs."""
    given, N = made.memory.inputs(), made.ocp.horizon
    x0, _ = made.memory.start(given, made.memory.guess(given, made.z0))
    u, z_next = ca.MX.sym("u", made.ocp.nu), ca.MX.sym("z_next", sum(made.memory.sizes))
    kept, first = made.memory.split(z_next), 0 if made.shift else 1
    X = ca.horzcat(x0, kept.X[:, first : first + N])
    U = ca.horzcat(u, kept.U[:, first : first + N - 1])
    given |= {"z_next": z_next, "u": u}
    plan = [ca.densify(part) for part in (X, U)]
    twice = {"allow_duplicate_io_names": True}  # u is input and output
    return ca.Function("prediction", [*given.values()], plan, [*given], ["x", "u"], twice)


def _limits(ocp: OptimalControlProblem, states: list[int]) -> Limits | None:
    """Return bounded states, and rows of the path at the first sample's p; None without any."""
    n, soft = len(states) + len(ocp.path_bounds), _soft(ocp)
    if not n:
        return None
    names = [ocp.names("x")[i] for i in states] + list(ocp.names("path"))
    size = ocp.np_ * (ocp.horizon + 1)
    sizes = {"q": ocp.state.numel_in("q"), "v": ocp.state.numel_in("v"), "ref": size}
    given = {key: ca.MX.sym(key, n) for key, n in (sizes | {"u": ocp.nu, "u_last": ocp.nu}).items()}
    x = ocp.state(*([given["q"], given["v"]] + [given["u_last"]] * ocp.rated))
    value = ca.vertcat(x[states], ocp.path(x, given["u"], given["ref"][: ocp.np_]))
    bounds = np.vstack([ocp.x_bounds[states], ocp.path_bounds])
    return Limits(
        ca.Function("limits", [*given.values()], [ca.densify(value)], [*given], ["value"]),
        Signal("value", tuple(names), ("",) * n),
        bounds[:, 0],
        bounds[:, 1],
        (False,) * len(states) + tuple(bool(one) for one in soft),
    )


def _soft(ocp: OptimalControlProblem) -> Array:
    soft: Array = np.zeros(len(ocp.path_bounds), dtype=bool)
    if ocp.path_penalties is not None:
        soft[: len(ocp.path_penalties)] = np.isfinite(ocp.path_penalties).all(axis=1)
    return soft
