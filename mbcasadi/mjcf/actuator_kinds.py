"""Laws of the actuators of a compiled model: muscles, DC motors, affine servos."""

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.actuators import (
    Bristle,
    DcMotor,
    MotorController,
    MuscleCurves,
    MuscleTimes,
    Thermal,
)
from mbcasadi.mjcf.compat import ActuatorSlots, input_names

Array = NDArray[np.float64]
Affine = tuple[float, float, float]

SHORTEST_TIME = 1e-15  # s; MuJoCo's lower bound of what it divides by (mjMINVAL)
NOTHING: Affine = (0.0, 0.0, 0.0)


class Kinds(NamedTuple):
    """MJCF's words for what one actuator is."""

    transmission: str
    gain: str
    bias: str
    dynamics: str


def kinds_of(model: mujoco.MjModel, i: int) -> Kinds:
    """Return the kinds of one actuator, in lower case."""
    return Kinds(
        _kind(mujoco.mjtTrn, model.actuator_trntype[i]),
        _kind(mujoco.mjtGain, model.actuator_gaintype[i]),
        _kind(mujoco.mjtBias, model.actuator_biastype[i]),
        _kind(mujoco.mjtDyn, model.actuator_dyntype[i]),
    )


def _kind(enum: type, value: int) -> str:
    """Return the last part of an enum's name: `mjGAIN_FIXED` → `fixed`."""
    name: str = enum(int(value)).name
    return name.split("_", 1)[1].lower()


def is_off(model: mujoco.MjModel, i: int) -> bool:
    """Return whether the group of an actuator is switched off."""
    group, groups_with_a_bit = int(model.actuator_group[i]), 31
    return 0 <= group < groups_with_a_bit and bool(model.opt.disableactuator & (1 << group))


LAW_TERMS = {"fixed": 1, "affine": 3}
"""How many terms MuJoCo reads of a gain or a bias, by its type; none of others."""


def affine_gain(model: mujoco.MjModel, i: int) -> Affine:
    """Return (g0, g1, g2); zero for other kinds."""
    return _affine(model.actuator_gainprm[i], kinds_of(model, i).gain)


def affine_bias(model: mujoco.MjModel, i: int) -> Affine:
    """Return (b0, b1, b2); zero for other kinds."""
    return _affine(model.actuator_biasprm[i], kinds_of(model, i).bias)


def _affine(parameters: Array, kind: str) -> Affine:
    c0, c1, c2 = (float(value) for value in parameters[:3])
    if kind == "affine":
        return (c0, c1, c2)
    return (c0, 0.0, 0.0) if kind == "fixed" else NOTHING


def muscle_curves(model: mujoco.MjModel, slots: ActuatorSlots, parameters: Array) -> MuscleCurves:
    """Return the curves of `<muscle>`, of the gain's or the bias's parameters."""
    lower, upper, force, scale, shortest, longest, vmax, passive, stretched = (
        float(value) for value in parameters[:9]
    )
    if force < 0.0:
        force = scale / max(SHORTEST_TIME, float(model.actuator_acc0[slots.output]))
    low, high = (float(value) for value in model.actuator_lengthrange[slots.output])
    return MuscleCurves(
        (low, high), (lower, upper), force, shortest, longest, vmax, passive, stretched
    )


def muscle_times(model: mujoco.MjModel, i: int) -> MuscleTimes:
    """Return time constants and `tausmooth`."""
    activation, deactivation, width = (float(value) for value in model.actuator_dynprm[i, :3])
    return MuscleTimes(activation, deactivation, width if width >= SHORTEST_TIME else 0.0)


def dc_motor(model: mujoco.MjModel, i: int, slots: ActuatorSlots) -> DcMotor:
    """Return a DC motor; its states follow each other as integral, temperature, bristle, current.

    A slew rate has a state too, the first; it is refused, so none is counted here.
    """
    gain, bias, dynamics = (
        [float(value) for value in parameters[i]]
        for parameters in (model.actuator_gainprm, model.actuator_biasprm, model.actuator_dynprm)
    )
    states = iter(range(int(model.actuator_actadr[i]), model.na))
    integral = next(states) if gain[5] > 0 else None
    return DcMotor(
        resistance=gain[0],
        constant=gain[1],
        electrical_time=max(0.0, dynamics[0]),
        current_rate=dynamics[1],
        cogging=(bias[0], bias[1], bias[2]),
        inputs=input_names(model, i),
        controls=tuple(range(slots.ctrl, slots.ctrl + slots.ctrl_count)),
        controller=MotorController(gain[4], gain[5], gain[6], dynamics[8], gain[7], integral)
        if set(input_names(model, i)) & {"pos", "vel", "ff"}
        else None,
        thermal=Thermal(dynamics[2], dynamics[3], dynamics[4], gain[3], gain[2], next(states))
        if dynamics[2] > 0
        else None,
        bristle=Bristle(dynamics[5], dynamics[6], bias[3], bias[4], bias[5], next(states))
        if dynamics[5] > 0
        else None,
        current=next(states) if dynamics[0] > 0 else None,
    )
