"""Actuators of a compiled model; one description for each control."""

import math

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Actuator, CoverageItem
from mbcasadi.description.actuators import Transmission
from mbcasadi.mjcf.compat import (
    ActuatorSlots,
    actuator_slots,
    measures_turned_sites,
    setpoints_are_circular,
)
from mbcasadi.mjcf.flags import Flags
from mbcasadi.mjcf.names import names, object_names

Array = NDArray[np.float64]
Range = tuple[float, float]

ACTUATOR_MEMBERS = ("actuation", "actuator_bias", "actuator_force", "act_dot")
TRANSMISSIONS: dict[str, Transmission] = {
    "JOINT": "joint",
    "JOINTINPARENT": "jointinparent",
    "TENDON": "tendon",
    "SITE": "site",
}
AFFINE_GAINS = ("FIXED", "AFFINE")
AFFINE_BIASES = ("NONE", "AFFINE")
LINEAR_DYNAMICS = ("NONE", "INTEGRATOR", "FILTER", "FILTEREXACT")
SHORTEST_TIME = 1e-15  # s; MuJoCo's lower bound of a filter's time constant (mjMINVAL)
NO_OBJECT = -1


def actuators(
    model: mujoco.MjModel, flags: Flags
) -> tuple[tuple[Actuator, ...], tuple[CoverageItem, ...]]:
    """Return one actuator for each control, and refusals.

    Where an actuator is refused, one without numbers takes its place: the controls keep MuJoCo's
    order, and what is computed from it is NaN.
    """
    slots = actuator_slots(model)
    described: list[Actuator] = []
    refusals: list[CoverageItem] = []
    for i, name in enumerate(names(model, "actuator", len(slots))):
        reasons = _refusals(model, i, name)
        refusals += reasons
        if reasons:
            described += _refused(model, flags, i, slots[i], name)
        else:
            described.append(_actuator(model, flags, i, slots[i], name))
            refusals += _refusal_of_matrix(described[-1])
    refusals += _refusals_without_actuation(model, flags, bool(described))
    return tuple(described), tuple(refusals)


def _actuator(
    model: mujoco.MjModel, flags: Flags, i: int, slots: ActuatorSlots, name: str
) -> Actuator:
    transmission = TRANSMISSIONS[_kind(mujoco.mjtTrn, model.actuator_trntype[i])]
    target, reference = (int(value) for value in model.actuator_trnid[i])
    enabled = flags.actuation and not _group_disabled(model, i)
    gain, bias = _gain(model, i), _bias(model, i)
    dynamics = _kind(mujoco.mjtDyn, model.actuator_dyntype[i]).lower()
    force_limited = flags.actuation and bool(model.actuator_forcelimited[i])
    return Actuator(
        name=name,
        transmission=transmission,
        target=target,
        reference=reference if transmission == "site" and reference != NO_OBJECT else None,
        gear=np.array(model.actuator_gear[slots.output]),
        gain=gain if enabled else (0.0, 0.0, 0.0),
        bias=bias if enabled else (0.0, 0.0, 0.0),
        ctrl_range=_ctrl_range(model, flags, slots.ctrl),
        force_range=_range(model.actuator_forcerange[i], force_limited),
        dynamics=dynamics,  # type: ignore[arg-type]  # one of LINEAR_DYNAMICS, lower case
        time_constant=max(SHORTEST_TIME, float(model.actuator_dynprm[i, 0])),
        act=int(model.actuator_actadr[i]) if dynamics != "none" else None,
        act_range=_range(model.actuator_actrange[i], bool(model.actuator_actlimited[i])),
        period=_period(model, i, slots, transmission),
    )


def _gain(model: mujoco.MjModel, i: int) -> tuple[float, float, float]:
    g0, g1, g2 = (float(value) for value in model.actuator_gainprm[i, :3])
    affine = _kind(mujoco.mjtGain, model.actuator_gaintype[i]) == "AFFINE"
    return (g0, g1, g2) if affine else (g0, 0.0, 0.0)


def _bias(model: mujoco.MjModel, i: int) -> tuple[float, float, float]:
    b0, b1, b2 = (float(value) for value in model.actuator_biasprm[i, :3])
    affine = _kind(mujoco.mjtBias, model.actuator_biastype[i]) == "AFFINE"
    return (b0, b1, b2) if affine else (0.0, 0.0, 0.0)


def _period(
    model: mujoco.MjModel, i: int, slots: ActuatorSlots, transmission: Transmission
) -> float:
    """Return the turn of a servo on a rotation in space, or 0.

    A servo is an actuator whose force is `kp (u - length) + b0 + b2 velocity`.
    """
    gain, bias = _gain(model, i), _bias(model, i)
    servo = (
        _kind(mujoco.mjtGain, model.actuator_gaintype[i]) == "FIXED"
        and _kind(mujoco.mjtBias, model.actuator_biastype[i]) == "AFFINE"
        and gain[0] == -bias[1]
        and _kind(mujoco.mjtDyn, model.actuator_dyntype[i]) in ("NONE", "INTEGRATOR")
    )
    if not servo or not setpoints_are_circular():
        return 0.0
    gear = model.actuator_gear[slots.output]
    target, reference = (int(value) for value in model.actuator_trnid[i])
    if transmission == "site" and reference != NO_OBJECT and not np.any(gear[:3]):
        return 2.0 * math.pi * float(np.linalg.norm(gear[3:]))
    on_ball = (
        transmission in ("joint", "jointinparent")
        and model.jnt_type[target] == mujoco.mjtJoint.mjJNT_BALL
    )
    return 2.0 * math.pi * float(np.linalg.norm(gear[:3])) if on_ball else 0.0


def _refusals(model: mujoco.MjModel, i: int, name: str) -> list[CoverageItem]:
    """Return why an actuator has no equation here; an empty list if it has."""
    transmission = _kind(mujoco.mjtTrn, model.actuator_trntype[i])
    gain = _kind(mujoco.mjtGain, model.actuator_gaintype[i])
    bias = _kind(mujoco.mjtBias, model.actuator_biastype[i])
    dynamics = _kind(mujoco.mjtDyn, model.actuator_dyntype[i])
    affine = "only constant and affine gain and bias have equations; use motor, position or general"
    reasons = []
    if model.actuator_plugin[i] >= 0:
        reasons.append(("plugin", "its force is unknown; use motor, position, velocity or general"))
    if transmission not in TRANSMISSIONS:
        advice = "has no equation here; use joint, jointinparent, tendon or site"
        reasons.append((f"{transmission.lower()} transmission", advice))
    elif transmission == "SITE" and not measures_turned_sites() and _turns_sites(model, i):
        reasons.append(
            ("refsite with turned sites", "wrong in this MuJoCo; upgrade to 3.15 or later")
        )
    if gain not in AFFINE_GAINS:
        reasons.append((f"{gain.lower()} gain", affine))
    elif bias not in AFFINE_BIASES:
        reasons.append((f"{bias.lower()} bias", affine))
    elif dynamics not in LINEAR_DYNAMICS:
        advice = "has no equation here; use integrator, filter or filterexact"
        reasons.append((f"{dynamics.lower()} dynamics", advice))
    elif model.actuator_actadr[i] >= 0 and model.actuator_actnum[i] != 1:
        reasons.append(("actdim", "several activation states have no equation here; use one"))
    if model.actuator_actearly[i]:
        reasons.append(("actearly", 'the force depends on the time step; set actearly="false"'))
    if model.actuator_delay[i] > 0.0:
        reasons.append(
            ("delay", "the force depends on past controls; set delay to 0, and delay in the plant")
        )
    members = ACTUATOR_MEMBERS if model.na else ACTUATOR_MEMBERS[:-1]
    return [
        CoverageItem(f"{object_names('actuator', [name])}: {what}", "refused", member, advice)
        for what, advice in reasons
        for member in members
    ]


def _turns_sites(model: mujoco.MjModel, i: int) -> bool:
    """Return whether an actuator measures a rotation between sites turned on their bodies."""
    site, reference = (int(value) for value in model.actuator_trnid[i])
    if reference == NO_OBJECT:
        return False
    turned = np.any(model.site_quat[[site, reference], 1:])
    return bool(turned and np.any(model.actuator_gear[actuator_slots(model)[i].output, 3:]))


def _refusal_of_matrix(actuator: Actuator) -> list[CoverageItem]:
    """Return the refusal of B(q) for a gain that depends on velocity."""
    if not actuator.gain[2]:
        return []
    feature = f"{object_names('actuator', [actuator.name])}: gain depends on velocity"
    advice = "no B(q) exists; use actuator_force, or set the third gain parameter to 0"
    return [CoverageItem(feature, "refused", "actuation", advice)]


def _refusals_without_actuation(
    model: mujoco.MjModel, flags: Flags, any_actuator: bool
) -> list[CoverageItem]:
    """Return a refusal of what has no equation once the actuation flag is off."""
    if flags.actuation or not any_actuator or not model.na:
        return []
    advice = "activations do not change while actuation is off; enable it"
    return [CoverageItem("flag actuation='disable'", "refused", "act_dot", advice)]


def _refused(
    model: mujoco.MjModel, flags: Flags, i: int, slots: ActuatorSlots, name: str
) -> list[Actuator]:
    """Return one actuator for each control of a refused one: its ranges are known, no more."""
    unknown = (math.nan, math.nan, math.nan)
    several = slots.ctrl_count > 1
    force_limited = flags.actuation and bool(model.actuator_forcelimited[i])
    return [
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


def _group_disabled(model: mujoco.MjModel, i: int) -> bool:
    group = int(model.actuator_group[i])
    groups_with_a_bit = 31
    return 0 <= group < groups_with_a_bit and bool(model.opt.disableactuator & (1 << group))


def _kind(enum: type, value: int) -> str:
    """Return the last part of an enum's name: `mjGAIN_FIXED` → `FIXED`."""
    name: str = enum(int(value)).name
    return name.split("_", 1)[1]


def _range(limits: Array, limited: bool) -> Range | None:
    return (float(limits[0]), float(limits[1])) if limited else None


def _ctrl_range(model: mujoco.MjModel, flags: Flags, ctrl: int) -> Range | None:
    limited = flags.clamp_ctrl and bool(model.actuator_ctrllimited[ctrl])
    return _range(model.actuator_ctrlrange[ctrl], limited)
