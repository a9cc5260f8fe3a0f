"""A linear MPC of free coordinates as the controller of a mechanism.

It measures (q, v) and returns u; the problem in between is in deviations on the constraint
manifold.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.describe import coordinates, rates
from mbcasadi.control.linear.controllability import require_stabilisable
from mbcasadi.control.linear.discrete import discretize
from mbcasadi.control.linear.feedback import deviations, require_continuous, setpoint_slots
from mbcasadi.control.linear.linearization import Linearization
from mbcasadi.control.linear.lqr import manifold_weights, require_equilibrium
from mbcasadi.control.mpc.linear.around import around_function, around_stages
from mbcasadi.control.mpc.linear.checks import bounds, checked
from mbcasadi.control.mpc.linear.limits import limits_of_mechanism
from mbcasadi.control.mpc.linear.lti import SOLVERS, LinearMPC
from mbcasadi.control.mpc.linear.model import Array, LinearModel, Output
from mbcasadi.control.mpc.linear.plan import plan_of_mechanism
from mbcasadi.control.solver import controller_fun
from mbcasadi.control.tasks import Slot
from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.errors import ProblemError


def on_manifold(
    linear: Linearization,
    make: Callable[..., LinearMPC],
    horizon: int,
    weights: tuple[ArrayLike, ArrayLike],
    *,
    period: float,
    outputs: Sequence[Output],
    ctrl_limits: ArrayLike | None,
    preview: bool,
    solver: str | None,
    **options: Any,
) -> LinearMPC:
    """Return a mechanism's controller from `make`, which builds one of a plain linear model.

    Args:
        linear, horizon, period, outputs, ctrl_limits, preview, solver: as in `linear_mpc`.
        make: takes the arguments of `lti_mpc`; its controller measures the state.
        weights: Q, R of `linear_mpc`.
        options: of `make`.

    Raises:
        ProblemError, ShapeError: as in `linear_mpc`.
    """
    require_continuous(linear)
    require_equilibrium(linear)
    system = linear.system
    if system.na or system.mask is not None or system.timed:
        raise ProblemError(
            f"'{system.name}' has activations, a mask or constraints that move; a linear MPC has "
            "one fixed model: linearise a system without them"
        )
    limits = bounds("ctrl_limits", _or(ctrl_limits, system.limits.ctrl), system.nu)
    _require_room(linear, limits)
    if options.get("P") is None:
        require_stabilisable(linear)
    sampled = discretize(linear, period)
    reduced = manifold_weights(linear, *weights)
    T = np.vstack([linear.to_dq, linear.to_dv])
    natural = checked(outputs, 2 * system.nv, system.nu)
    core = make(
        LinearModel.of(sampled.dfdx, sampled.dfdu, period),
        horizon,
        reduced.Q,
        reduced.R,
        u_bounds=limits - linear.u[:, None],
        outputs=[replace(output, C=output.C @ T) for output in natural],
        preview=preview,
        solver=solver,
        **options,
    )
    slots = _slots(linear, horizon, preview)
    return _of_mechanism(linear, core, slots, limits, solver)


def _require_room(linear: Linearization, limits: Array) -> None:
    low, high = limits.T
    beyond = np.flatnonzero((linear.u < low) | (linear.u > high))
    if beyond.size:
        i = beyond[0]
        raise ProblemError(
            f"'{linear.system.name}' is held by {linear.system.actuator_names[i]} = "
            f"{linear.u[i]:.4g}, outside ctrl_limits {low[i]:g} to {high[i]:g}; expected limits "
            "that hold the equilibrium: see equilibrium() for another one"
        )


def _or(given: ArrayLike | None, default: Array) -> ArrayLike:
    return default if given is None else given


def _slots(linear: Linearization, horizon: int, preview: bool) -> tuple[Slot, ...]:
    q, v, u = setpoint_slots(linear.system)
    if not preview:
        return q, v, u
    stages = [
        replace(slot, name=f"{part}{k}")
        for k in range(1, horizon + 1)
        for part, slot in (("q", q), ("v", v))
    ]
    return (*stages, u)


def _of_mechanism(
    linear: Linearization,
    core: LinearMPC,
    slots: tuple[Slot, ...],
    limits: Array,
    solver: str | None,
) -> LinearMPC:
    """Return the controller that measures (q, v) in place of x."""
    system, inner = linear.system, core.controller
    nref = sum(slot.size for slot in slots)
    sizes = {"q": system.nq, "v": system.nv, "ref": nref, "z": inner.z0.size}

    def own(given: dict[str, Any]) -> list[Any]:
        x = _deviation(linear, given["q"], given["v"])
        return [x, _reference(linear, given["ref"]), given["z"]]

    def control(u: Any) -> Any:
        low, high = ca.DM(limits[:, 0]), ca.DM(limits[:, 1])
        return ca.fmin(ca.fmax(u + ca.DM(linear.u), low), high)

    if inner.stages is None:
        stages, function = None, around_function(inner.function, sizes, own, control)
    else:
        stages = around_stages(inner.stages, sizes, own, control)
        function = controller_fun(inner.name, stages, solver or SOLVERS["condensed"])
    controller = _described(linear, core, function, stages, slots, limits)
    assert inner.prediction is not None
    rows = [f"{part.name}.{one}" for part in controller.inputs[:2] for one in part.components]
    controller = replace(
        controller,
        limits=limits_of_mechanism(
            inner.limits, sizes, lambda s: _deviation(linear, s["q"], s["v"]), linear.u
        ),
        prediction=plan_of_mechanism(linear, inner.prediction, sizes, own),
        prediction_rows=tuple(rows),
    )
    unknowns = core.unknowns and around_function(core.unknowns, sizes, own)
    parameters = around_function(core.parameters, sizes, own)
    return replace(
        core, slots=slots, controller=controller, unknowns=unknowns, parameters=parameters
    )


def _deviation(linear: Linearization, q: Any, v: Any) -> Any:
    """Return x (nx, 1)."""
    dq = linear.system.difference(ca.DM(linear.q), q)
    return ca.DM(linear.from_dq) @ dq + ca.DM(linear.from_dv) @ (v - ca.DM(linear.v))


def _reference(linear: Linearization, ref: Any) -> Any:
    """Return the states of all samples, then the control, as deviations."""
    nq, nv, nu = linear.system.nq, linear.system.nv, linear.nu
    samples = (ref.numel() - nu) // (nq + nv)
    states = [
        _deviation(linear, part[:nq, 0], part[nq:, 0])
        for part in ca.vertsplit(ref[: samples * (nq + nv), 0], nq + nv)
    ]
    return ca.vertcat(*states, ref[samples * (nq + nv) :, 0] - ca.DM(linear.u))


def _described(
    linear: Linearization,
    core: LinearMPC,
    function: ca.Function,
    stages: LeastDistanceStages | None,
    slots: Sequence[Slot],
    limits: Array,
) -> Controller:
    system = linear.system
    components = tuple(f"{slot.name}.{one}" for slot in slots for one in slot.components)
    units = tuple(unit for slot in slots for unit in slot.units)
    names, error_units = zip(*deviations(system), strict=True)
    z = next(signal for signal in core.controller.inputs if signal.name == "z")
    return replace(
        core.controller,
        function=function,
        inputs=(coordinates(system), rates(system), Signal("ref", components, units), z),
        outputs=(
            Signal("u", system.actuator_names, ("",) * system.nu),
            *core.controller.outputs[1:],
        ),
        u_min=limits[:, 0],
        u_max=limits[:, 1],
        stages=stages,
        source=system.name,
        monitor=_monitor(linear, slots),
        monitors=tuple(Signal(name, names, error_units) for name in ("target", "error")),
    )


def _monitor(linear: Linearization, slots: Sequence[Slot]) -> ca.Function:
    """Return (q, ref) → (target, error): the first setpoint and the difference to it."""
    system = linear.system
    q, ref = ca.SX.sym("q", system.nq), ca.SX.sym("ref", sum(slot.size for slot in slots))
    wanted = ref[: system.nq, 0]
    target = system.difference(ca.DM(linear.q), wanted)
    outputs = [target, system.difference(q, wanted)]
    return ca.Function("monitor", [q, ref], outputs, ["q", "ref"], ["target", "error"])
