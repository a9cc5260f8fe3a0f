"""PID servos of a compiled model: those of MJCF and those of MuJoCo's plugin `mujoco.pid`."""

import re
from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np

from mbcasadi.description.actuators import Pid
from mbcasadi.mjcf.actuator_kinds import kinds_of
from mbcasadi.mjcf.compat import actuator_slots

PLUGIN = "mujoco.pid"
NO_LIMIT = 1e30  # times a slew rate
ATTRIBUTES = ("kp", "ki", "kd", "imax", "slewmax")  # in the order of `plugin_attr`
NUMBER = re.compile(rb"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
PROBE = f"""<mujoco><extension><plugin plugin="{PLUGIN}"/></extension><worldbody><body>
<joint name="j"/><geom size="1"/></body></worldbody><actuator>
<plugin plugin="{PLUGIN}" joint="j"/></actuator></mujoco>"""


class PluginGains(NamedTuple):
    """What a plugin of PID control was configured with; None for what is not given."""

    kp: float
    ki: float
    kd: float
    imax: float | None
    slewmax: float | None


def plugin_gains(model: mujoco.MjModel, i: int) -> PluginGains | None:
    """Return the gains of an actuator that is a `mujoco.pid`, None for all others."""
    instance = int(model.actuator_plugin[i])
    if instance < 0 or int(model.plugin[instance]) != _slot():
        return None
    start = int(model.plugin_attradr[instance])
    texts = model.plugin_attr.tobytes()[start:].split(b"\0")[: len(ATTRIBUTES)]
    kp, ki, kd, imax, slewmax = (_number(text) for text in texts)
    return PluginGains(kp or 0.0, ki or 0.0, kd or 0.0, imax, slewmax)


@cache
def _slot() -> int:
    """Return the place of the plugin among those of this process, -1 where it is not loaded."""
    try:
        return int(mujoco.MjModel.from_xml_string(PROBE).plugin[0])
    except ValueError:
        return -1


def _number(text: bytes) -> float | None:
    """Return the number that a text starts with, as C reads it; None of an empty text."""
    if not text:
        return None
    found = NUMBER.match(text)
    return 0.0 if found is None else float(found.group())


def memory_of_plugin(model: mujoco.MjModel, i: int, gains: PluginGains) -> Pid | None:
    """Return the memory of a `mujoco.pid`: integral, then set-point; None without one."""
    states = iter(range(int(model.actuator_actadr[i]), model.na))
    has_activation = kinds_of(model, i).dynamics != "none"
    if not (gains.ki or gains.slewmax is not None or (has_activation and gains.kd)):
        return None
    return Pid(
        ki=gains.ki,
        step=float(model.opt.timestep),
        max_integral=np.inf if gains.imax is None or not gains.ki else gains.imax / gains.ki,
        slew=np.inf if gains.slewmax is None else gains.slewmax,
        rate_gain=gains.kd if has_activation else 0.0,
        integral=next(states) if gains.ki else None,
        reached=None if gains.slewmax is None else next(states),
        is_plugin=True,
    )


def memory_of_pid(model: mujoco.MjModel, i: int) -> Pid | None:
    """Return the memory of a pid of MJCF: set-point, then integral; None without one."""
    if int(model.actuator_actadr[i]) < 0:
        return None
    states = iter(range(int(model.actuator_actadr[i]), model.na))
    ki = float(model.actuator_gainprm[i, 0])
    most, slew = (float(value) for value in model.actuator_dynprm[i, :2])
    return Pid(
        ki=max(ki, 0.0),
        step=float(model.opt.timestep),
        max_integral=most if most > 0 else np.inf,
        slew=slew if slew > 0 else np.inf,
        reached=next(states) if slew > 0 else None,
        integral=next(states) if ki > 0 else None,
    )


def pulls_by_control(model: mujoco.MjModel, i: int) -> bool:
    """Return whether an actuator is a PID servo whose set-point is its control."""
    if kinds_of(model, i).gain == "pid":
        return True
    return plugin_gains(model, i) is not None and kinds_of(model, i).dynamics == "none"


def without_memory(model: mujoco.MjModel) -> None:
    """Take the bounds of PID servos away: those of their integral and of their set-point's rate.

    A plugin's own rate of the set-point has no effect at time 0.
    """
    for i in range(len(model.actuator_gaintype)):
        if kinds_of(model, i).gain == "pid" and int(model.actuator_actadr[i]) >= 0:
            model.actuator_dynprm[i, 0] = 0.0
            model.actuator_dynprm[i, 1] *= NO_LIMIT
        elif plugin_gains(model, i) is not None:
            start = int(model.plugin_attradr[int(model.actuator_plugin[i])])
            texts = bytes(model.plugin_attr[start:]).split(b"\0")
            texts[ATTRIBUTES.index("imax")] = b""
            kept = b"\0".join(texts).ljust(len(model.plugin_attr) - start, b"\0")
            model.plugin_attr[start:] = np.frombuffer(kept, model.plugin_attr.dtype)


def set_start(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Let plugins with a slew rate start from the lengths that they have, as at time 0 they do.

    MuJoCo then takes any set-point at once; a law that knows the rate needs one to start from.
    """
    for i in range(len(model.actuator_plugin)):
        gains = plugin_gains(model, i)
        memory = None if gains is None else memory_of_plugin(model, i, gains)
        if memory is not None and memory.reached is not None:
            data.act[memory.reached] = data.actuator_length[actuator_slots(model)[i].output]
