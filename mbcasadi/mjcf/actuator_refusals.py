"""What of a model's actuators has no equation here, for the members that it makes wrong."""

from typing import NamedTuple

import mujoco
import numpy as np

from mbcasadi.description import Actuator, CoverageItem
from mbcasadi.mjcf.actuator_kinds import is_off, kinds_of
from mbcasadi.mjcf.compat import (
    actuator_slots,
    has_input_names,
    input_names,
    measures_turned_sites,
    plugins_read_own_control,
)
from mbcasadi.mjcf.flags import Flags
from mbcasadi.mjcf.names import object_names
from mbcasadi.mjcf.pid import memory_of_pid, memory_of_plugin, plugin_gains

FORCE = ("actuation", "actuator_bias", "actuator_force")
NOT_AFFINE = ("actuation", "actuator_bias")
RATE = ("act_dot",)
TRANSMISSIONS: tuple[str, ...] = ("joint", "jointinparent", "tendon", "site", "slidercrank", "body")
GAINS = ("fixed", "affine", "muscle", "dcmotor")
BIASES = ("none", "affine", "muscle", "dcmotor")
DYNAMICS = ("none", "integrator", "filter", "filterexact", "muscle", "dcmotor")
SLEW = 7  # index in dynprm of a DC motor
CONTROLLER = slice(4, 8)  # in its gainprm
NO_OBJECT = -1


class Reason(NamedTuple):
    """A feature without an equation: its name, the members that it makes wrong, a remedy."""

    feature: str
    members: tuple[str, ...]
    advice: str


def refusals_of(model: mujoco.MjModel, i: int, name: str) -> list[CoverageItem]:
    """Return why an actuator has no equation, or not all of them; an empty list if it has."""
    reasons = [
        *_of_plugin(model, i),
        *_of_transmission(model, i),
        *_of_law(model, i),
        *_of_motor(model, i),
    ]
    who = object_names("actuator", [name])
    return [
        CoverageItem(f"{who}: {reason.feature}", "refused", member, reason.advice)
        for reason in reasons
        for member in reason.members
        if model.na or member not in RATE
    ]


def _of_plugin(model: mujoco.MjModel, i: int) -> list[Reason]:
    if model.actuator_plugin[i] < 0:
        return []
    members = FORCE + (RATE if model.actuator_actadr[i] >= 0 else ())
    if plugin_gains(model, i) is None:
        advice = "its force is unknown; use motor, position, velocity, general or mujoco.pid"
        return [Reason("plugin", members, advice)]
    slots = actuator_slots(model)[i]
    if not plugins_read_own_control() and (slots.ctrl, slots.output) != (i, i):
        advice = "this MuJoCo gives it another one's control; put it first, or upgrade to 4.0"
        return [Reason("plugin behind actuators with several inputs", members, advice)]
    if kinds_of(model, i).dynamics not in ("none", "integrator", "filter", "filterexact"):
        advice = "its states have no equation here; use integrator, filter or filterexact"
        return [Reason(f"plugin with {kinds_of(model, i).dynamics} dynamics", members, advice)]
    if is_off(model, i):
        advice = "a plugin pulls there all the same, and its states stand still; enable the group"
        return [Reason("plugin in a group that is switched off", members, advice)]
    return _without_gain(model, i)


def _without_gain(model: mujoco.MjModel, i: int) -> list[Reason]:
    """Return why the force of a PID servo is not `B u + f_0`: nothing multiplies its set-point."""
    gains = plugin_gains(model, i)
    if gains is None:
        memory, kp = memory_of_pid(model, i), -float(model.actuator_biasprm[i, 1])
    else:
        memory = memory_of_plugin(model, i, gains)
        kp = gains.kp + (0.0 if memory is None else memory.error_gain)
    if memory is None or kp or not (memory.ki or memory.rate_gain):
        return []
    advice = "its force is not B u + f_0 with kp = 0; use actuator_force, or give kp"
    return [Reason("pid without kp", NOT_AFFINE, advice)]


def _of_transmission(model: mujoco.MjModel, i: int) -> list[Reason]:
    kind = kinds_of(model, i).transmission
    if kind not in TRANSMISSIONS:
        advice = "has no equation here; use joint, jointinparent, a tendon, site or slidercrank"
        return [Reason(f"{kind} transmission", FORCE, advice)]
    if kind == "site" and not measures_turned_sites() and _turns_sites(model, i):
        advice = "wrong in this MuJoCo; upgrade to 3.15 or later"
        return [Reason("refsite with turned sites", FORCE, advice)]
    return []


def _of_law(model: mujoco.MjModel, i: int) -> list[Reason]:
    """Return what of gain, bias and activation has no equation."""
    kinds, reasons = kinds_of(model, i), []
    whole = FORCE + (RATE if model.actuator_actadr[i] >= 0 else ())
    if plugin_gains(model, i) is not None:
        return []
    if kinds.gain == "pid":
        early = model.actuator_actadr[i] >= 0 and model.actuator_actearly[i]
        advice = "its integral has no equation here; set actearly to false"
        return [Reason("pid with actearly", whole, advice)] if early else _without_gain(model, i)
    smooth = "only constant, affine, muscle and dcmotor ones have equations; use those"
    if kinds.gain not in GAINS:
        reasons.append(Reason(f"{kinds.gain} gain", FORCE, smooth))
    if kinds.bias not in BIASES:
        reasons.append(Reason(f"{kinds.bias} bias", FORCE, smooth))
    if kinds.dynamics not in DYNAMICS or (
        kinds.dynamics != "dcmotor" and model.actuator_actnum[i] > 1
    ):
        advice = "has no equation here; use integrator, filter, filterexact or muscle"
        members = RATE + (("actuator_force",) if model.actuator_actearly[i] else ())
        reasons.append(Reason(f"{kinds.dynamics} dynamics", members, advice))
    if (kinds.gain == "dcmotor") != (kinds.bias == "dcmotor") or (
        kinds.gain == "dcmotor" and kinds.dynamics != "dcmotor"
    ):
        reasons.append(Reason("part of a dcmotor", whole, "use the element dcmotor"))
    return reasons


def _of_motor(model: mujoco.MjModel, i: int) -> list[Reason]:
    if kinds_of(model, i).gain != "dcmotor":
        return []
    slots = actuator_slots(model)[i]
    whole = FORCE + (RATE if model.actuator_actadr[i] >= 0 else ())
    if model.actuator_dynprm[i, SLEW] > 0:
        advice = "a slew rate depends on the time step; set slewmax to 0"
        return [Reason("dcmotor with a slew rate", whole, advice)]
    if slots.ctrl_count == 0:
        advice = "it acts without a control, which has no place here; give it an input"
        return [Reason('dcmotor with input="none"', whole[1:], advice)]
    if len(input_names(model, i)) != slots.ctrl_count or (
        not has_input_names(model) and np.any(model.actuator_gainprm[i, CONTROLLER])
    ):
        advice = "its inputs differ between versions of MuJoCo; upgrade to 4.0 or later"
        return [Reason("dcmotor with a controller", whole, advice)]
    return _not_affine(model, i)


def _not_affine(model: mujoco.MjModel, i: int) -> list[Reason]:
    """Return why a motor's force is not `B u + f_0`, u its voltage or the state of its current."""
    has_current, warms, has_bristles = (model.actuator_dynprm[i, k] > 0 for k in (0, 2, 5))
    reasons = []
    if input_names(model, i) != ("voltage",) and not has_current:
        advice = "its force is not B u + f_0; use actuator_force, or a voltage as input"
        reasons.append(Reason("dcmotor with a controller", NOT_AFFINE, advice))
    if warms and not has_current:
        advice = "its force is not B u + f_0 of (q, v); use actuator_force, or leave out thermal"
        reasons.append(Reason("dcmotor with a temperature", NOT_AFFINE, advice))
    if has_bristles:
        advice = "its force is not that of (q, v); use actuator_force, or leave out lugre"
        reasons.append(Reason("dcmotor with friction of bristles", NOT_AFFINE[1:], advice))
    return reasons


def _turns_sites(model: mujoco.MjModel, i: int) -> bool:
    """Return whether an actuator measures a rotation between sites turned on their bodies."""
    site, reference = (int(value) for value in model.actuator_trnid[i])
    if reference == NO_OBJECT:
        return False
    turned = np.any(model.site_quat[[site, reference], 1:])
    return bool(turned and np.any(model.actuator_gear[actuator_slots(model)[i].output, 3:]))


def refusals_without_actuation(
    model: mujoco.MjModel, flags: Flags, any_actuator: bool
) -> list[CoverageItem]:
    """Return a refusal of what has no equation once the actuation flag is off."""
    if flags.actuation or not any_actuator or not model.na:
        return []
    advice = "activations do not change while actuation is off; enable it"
    return [CoverageItem("flag actuation='disable'", "refused", "act_dot", advice)]


def plant_only_actuators(actuators: tuple[Actuator, ...]) -> list[CoverageItem]:
    """Return what actuators do in MuJoCo's simulation only: adhesion, delays."""
    sticking = [a.name for a in actuators if a.transmission == "body"]
    delayed = [a.name for a in actuators if a.delay]
    lateness = sorted({a.delay for a in actuators if a.delay})
    groups = (
        (
            sticking,
            "adhesion",
            "it pulls where contacts are, so its column of B is zero; give `Contact(adhesion=)` "
            "its force, gain times control over the number of contacts, and send that control "
            "beside the law's",
        ),
        (
            delayed,
            f"delay of {' and '.join(f'{1e3 * s:g} ms' for s in lateness)}",
            "the equations take the control that acts; inverse dynamics accounts for the "
            "delay, and `validate` runs it",
        ),
    )
    return [
        CoverageItem(f"{object_names('actuator', who)}: {what}", "plant only", "", why)
        for who, what, why in groups
        if who
    ]
