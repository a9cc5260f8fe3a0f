"""Actuators of a compiled model; one description for each control."""

import math
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Actuator, CoverageItem
from mbcasadi.mjcf.actuator_kinds import (
    LAW_TERMS,
    NOTHING,
    SHORTEST_TIME,
    Kinds,
    affine_bias,
    affine_gain,
    dc_motor,
    is_off,
    kinds_of,
    muscle_curves,
    muscle_times,
)
from mbcasadi.mjcf.actuator_refusals import (
    DYNAMICS,
    NO_OBJECT,
    plant_only_actuators,
    refusals_of,
    refusals_without_actuation,
)
from mbcasadi.mjcf.compat import (
    ActuatorSlots,
    actuator_slots,
    input_names,
    setpoints_are_circular,
)
from mbcasadi.mjcf.flags import Flags
from mbcasadi.mjcf.names import names
from mbcasadi.mjcf.pid import PluginGains, memory_of_pid, memory_of_plugin, plugin_gains

Array = NDArray[np.float64]
Range = tuple[float, float]

ACTING = "actuator_force"  # of which member a refusal leaves nothing of an actuator's numbers


def actuators(
    model: mujoco.MjModel, flags: Flags
) -> tuple[tuple[Actuator, ...], tuple[CoverageItem, ...]]:
    """Return one actuator for each control, and refusals.

    Where the force is refused, one without numbers takes its place: the controls keep MuJoCo's
    order, and what is computed from it is NaN.
    """
    slots = actuator_slots(model)
    described: list[Actuator] = []
    items: list[CoverageItem] = []
    for i, name in enumerate(names(model, "actuator", len(slots))):
        reasons = refusals_of(model, i, name)
        items += reasons
        if any(reason.member == ACTING for reason in reasons):
            described += _refused(model, flags, i, slots[i], name)
        else:
            described += _actuators(model, flags, i, slots[i], name)
    items += refusals_without_actuation(model, flags, bool(described))
    return tuple(described), (*items, *plant_only_actuators(tuple(described)))


def _actuators(
    model: mujoco.MjModel, flags: Flags, i: int, slots: ActuatorSlots, name: str
) -> list[Actuator]:
    """Return the actuator of each control; several of one actuator share its force range."""
    first, kinds = _actuator(model, flags, i, slots, name), kinds_of(model, i)
    plugin = plugin_gains(model, i)
    if plugin is not None:
        return [_of_plugin(model, flags, i, first, plugin)]
    if kinds.gain == "pid":
        return _pid(model, flags, i, slots, first)
    named = [f"{name}[{k}]" if slots.ctrl_count > 1 else name for k in range(slots.ctrl_count)]
    silent = replace(first, gain=NOTHING, bias=NOTHING, motor=None, act=None, acts=False)
    if slots.ctrl_count == 1:
        return [first]
    return [
        replace(
            silent if k else first, name=each, ctrl_range=_ctrl_range(model, flags, slots.ctrl + k)
        )
        for k, each in enumerate(named)
    ]


def _pid(
    model: mujoco.MjModel, flags: Flags, i: int, slots: ActuatorSlots, first: Actuator
) -> list[Actuator]:
    """Return a servo, `kp (u_pos - l) + kv (u_vel - l̇) + u_ff`, a term for each input.

    kp and kv are those of the affine bias. The first input, the set-point, has the memory.
    """
    _, b1, b2 = affine_bias(model, i)
    gains = {"pos": -b1, "vel": -b2, "ff": 1.0}
    several, acts = slots.ctrl_count > 1, _enabled(model, flags, i)
    return [
        replace(
            first,
            name=f"{first.name}[{k}]" if several else first.name,
            gain=(gains[meaning], 0.0, 0.0) if acts else NOTHING,
            bias=first.bias if k == 0 else NOTHING,
            ctrl_range=_ctrl_range(model, flags, slots.ctrl + k),
            period=_turn(model, i, slots) if meaning == "pos" else 0.0,
            leader=slots.ctrl if several else None,
            dynamics="none",
            act=None,
            pid=memory_of_pid(model, i) if k == 0 else None,
        )
        for k, meaning in enumerate(input_names(model, i))
    ]


def _of_plugin(
    model: mujoco.MjModel, flags: Flags, i: int, described: Actuator, gains: PluginGains
) -> Actuator:
    """Return a `mujoco.pid`: it clips its control whatever the flags say, and knows no delay."""
    memory = memory_of_plugin(model, i, gains)
    kp = gains.kp + (0.0 if memory is None else memory.error_gain)
    follows = described.dynamics != "none"
    limited = bool(model.actuator_ctrllimited[i]) and flags.actuation
    return replace(
        described,
        gain=(kp, 0.0, 0.0) if described.acts else NOTHING,
        bias=(0.0, -kp, -gains.kd) if described.acts else NOTHING,
        gain_terms=0,
        bias_terms=0,
        ctrl_range=described.ctrl_range
        if follows
        else _range(model.actuator_ctrlrange[i], limited),
        act=described.act if follows else None,
        delay=described.delay if follows else 0.0,
        period=0.0,
        pid=memory,
        explicit=True,
    )


def _actuator(
    model: mujoco.MjModel, flags: Flags, i: int, slots: ActuatorSlots, name: str
) -> Actuator:
    kinds = kinds_of(model, i)
    target, reference = (int(value) for value in model.actuator_trnid[i])
    acts = _enabled(model, flags, i)
    curves = {
        key: muscle_curves(model, slots, parameters[i])
        for key, kind, parameters in (
            ("muscle_gain", kinds.gain, model.actuator_gainprm),
            ("muscle_bias", kinds.bias, model.actuator_biasprm),
        )
        if kind == "muscle" and acts
    }
    force_limited = flags.actuation and bool(model.actuator_forcelimited[i])
    described = Actuator(
        name=name,
        transmission=kinds.transmission,  # type: ignore[arg-type]  # one of TRANSMISSIONS
        target=target,
        reference=reference if reference != NO_OBJECT else None,
        gear=np.array(model.actuator_gear[slots.output]),
        gain=affine_gain(model, i) if acts else NOTHING,
        bias=affine_bias(model, i) if acts else NOTHING,
        gain_terms=LAW_TERMS.get(kinds.gain, 0),
        bias_terms=0 if kinds.gain == "pid" else LAW_TERMS.get(kinds.bias, 0),
        ctrl_range=_ctrl_range(model, flags, slots.ctrl),
        force_range=_range(model.actuator_forcerange[i], force_limited),
        period=_period(model, i, slots, kinds),
        rod=float(model.actuator_cranklength[slots.output]),
        ahead=float(model.opt.timestep) if model.actuator_actearly[i] else 0.0,
        delay=float(model.actuator_delay[i]),
        muscle_gain=curves.get("muscle_gain"),
        muscle_bias=curves.get("muscle_bias"),
        acts=acts,
    )
    described = _activation(described, model, i)
    return _with_motor(model, i, slots, described, acts) if kinds.gain == "dcmotor" else described


def _with_motor(
    model: mujoco.MjModel, i: int, slots: ActuatorSlots, described: Actuator, acts: bool
) -> Actuator:
    """Return the actuator of a DC motor; gain and bias are those of its voltage or current.

    `K i`, or `K / R (u - K l̇)` where the current has no state.
    """
    motor = dc_motor(model, i, slots)
    K, R = motor.constant, max(SHORTEST_TIME, motor.resistance)
    gain, bias = (K / R, 0.0, 0.0), (0.0, 0.0, -K * K / R)
    if motor.current is not None:
        gain, bias = (K, 0.0, 0.0), NOTHING
    return replace(
        described,
        gain=gain if acts else NOTHING,
        bias=bias if acts else NOTHING,
        motor=motor,
        act=motor.current,
        act_range=None,
    )


def _activation(described: Actuator, model: mujoco.MjModel, i: int) -> Actuator:
    """Return an actuator with its activation; the last of several is the one that pulls."""
    first, dynamics = int(model.actuator_actadr[i]), kinds_of(model, i).dynamics
    return replace(
        described,
        ctrl_range=_unit_range(described) if dynamics == "muscle" else described.ctrl_range,
        dynamics=dynamics if dynamics in DYNAMICS else "none",  # type: ignore[arg-type]
        time_constant=max(SHORTEST_TIME, float(model.actuator_dynprm[i, 0])),
        act=None if first < 0 else first + int(model.actuator_actnum[i]) - 1,
        act_range=_range(model.actuator_actrange[i], bool(model.actuator_actlimited[i])),
        muscle_times=muscle_times(model, i) if dynamics == "muscle" else None,
    )


def _unit_range(muscle: Actuator) -> Range:
    """Return the range of a control that MuJoCo clips to 0 to 1 once more."""
    low, high = muscle.ctrl_range or (0.0, 1.0)
    return min(max(low, 0.0), 1.0), max(min(high, 1.0), 0.0)


def _period(model: mujoco.MjModel, i: int, slots: ActuatorSlots, kinds: Kinds) -> float:
    """Return the turn of a servo on a rotation in space, or 0.

    A servo is an actuator whose force is `kp (u - length) + b0 + b2 velocity`.
    """
    servo = (
        (kinds.gain, kinds.bias) == ("fixed", "affine")
        and affine_gain(model, i)[0] == -affine_bias(model, i)[1]
        and kinds.dynamics in ("none", "integrator")
    )
    return _turn(model, i, slots) if servo else 0.0


def _turn(model: mujoco.MjModel, i: int, slots: ActuatorSlots) -> float:
    """Return by how much a length of a rotation in space grows in a turn; 0 for other lengths."""
    if not setpoints_are_circular():
        return 0.0
    transmission = kinds_of(model, i).transmission
    gear = model.actuator_gear[slots.output]
    target, reference = (int(value) for value in model.actuator_trnid[i])
    if transmission == "site" and reference != NO_OBJECT and not np.any(gear[:3]):
        return 2.0 * math.pi * float(np.linalg.norm(gear[3:]))
    on_ball = (
        transmission in ("joint", "jointinparent")
        and model.jnt_type[target] == mujoco.mjtJoint.mjJNT_BALL
    )
    return 2.0 * math.pi * float(np.linalg.norm(gear[:3])) if on_ball else 0.0


def _refused(
    model: mujoco.MjModel, flags: Flags, i: int, slots: ActuatorSlots, name: str
) -> list[Actuator]:
    """Return one actuator for each control of a refused one: its force is unknown."""
    unknown = (math.nan, math.nan, math.nan)
    several = slots.ctrl_count > 1
    force_limited = flags.actuation and bool(model.actuator_forcelimited[i])
    placeholders = [
        Actuator(
            name=f"{name}[{k}]" if several else name,
            transmission="joint",
            target=0,
            gear=np.full(6, math.nan),
            gain=unknown,
            bias=unknown,
            ctrl_range=_ctrl_range(model, flags, slots.ctrl + k),
            force_range=_range(model.actuator_forcerange[i], force_limited),
        )
        for k in range(slots.ctrl_count)
    ]
    if kinds_of(model, i).gain in ("dcmotor", "pid", "so3"):
        return placeholders
    return [_activation(placeholder, model, i) for placeholder in placeholders]


def _enabled(model: mujoco.MjModel, flags: Flags, i: int) -> bool:
    """Return whether an actuator acts: neither the flag nor its group is off."""
    return flags.actuation and not is_off(model, i)


def _range(limits: Array, limited: bool) -> Range | None:
    return (float(limits[0]), float(limits[1])) if limited else None


def _ctrl_range(model: mujoco.MjModel, flags: Flags, ctrl: int) -> Range | None:
    limited = flags.clamp_ctrl and bool(model.actuator_ctrllimited[ctrl])
    return _range(model.actuator_ctrlrange[ctrl], limited)
