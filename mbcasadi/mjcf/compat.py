"""Differences between versions of MuJoCo (3.10 to 4.x).

- 3.11 separates actuators from controls: `nactuator` may differ from `nu`, and an actuator owns
  slices of controls and of force outputs. Before, all of them are one to one.
- 3.11 takes rotational set-points on the circle.
- 3.14 computes the silhouette of an ellipsoid in a medium at any size and speed; before, the
  denominators were held above `mjMINVAL`, in whatever unit.
- 3.14 counts the torque of a weld in `cfrc_ext` as it acts; before, the multipliers themselves.
- 3.14 counts the forces of spatial tendons in `cfrc_ext`; before, none of them.
- 3.15 corrects the rotation between two sites that are turned on their bodies.
- 3.16 finds the point where a tendon touches a geom inside by the angle; before, by its sine.
- 4.0 gives a plugin its own control behind an actuator with several; before, another one's.
- 4.0 names the type of a tendon, brings plastic springs, changes the side on which a tendon
  passes a geom with a side site, and lets acceleration sensors on what no joint moves feel gravity;
  before, they read zero.
"""

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.tendons import WrapGeneration

Array = NDArray[np.float64]

VERSION = tuple(int(part) for part in mujoco.__version__.split(".")[:2])
CIRCULAR_SETPOINTS = (3, 11)
TURNED_SITES = (3, 15)
SILHOUETTES = (3, 14)
HELD_ABOVE = 1e-15  # mjMINVAL
TRUE_WELD_TORQUES = (3, 14)
TENDON_WRENCHES = (3, 14)
STATIC_GRAVITY = (4, 0)
INSIDE_BY_ANGLE = (3, 16)
LONG_WAYS = (4, 0)
OWN_CONTROLS = (4, 0)
NO_STATE = -1


class ActuatorSlots(NamedTuple):
    """Indices of one actuator in the model's arrays."""

    ctrl: int  # first control
    ctrl_count: int
    output: int  # first force output, the row of `actuator_gear`


def actuator_slots(model: mujoco.MjModel) -> tuple[ActuatorSlots, ...]:
    """Return controls and outputs of every actuator."""
    if getattr(model, "nactuator", None) is None:
        return tuple(ActuatorSlots(i, 1, i) for i in range(model.nu))
    return tuple(
        ActuatorSlots(
            int(model.actuator_ctrladr[i]),
            int(model.actuator_ctrlnum[i]),
            int(model.actuator_outadr[i]),
        )
        for i in range(model.nactuator)
    )


INPUT_BITS = {"pos": 1, "vel": 2, "ff": 4, "voltage": 8}
"""What the controls of a servo or motor mean, in their order (4.0)."""


def has_gains_in_bias(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Return which actuators are pid servos, whose control acts through the bias (4.0)."""
    kind = getattr(mujoco.mjtGain, "mjGAIN_PID", None)
    if kind is None:
        return np.zeros(len(model.actuator_gaintype), dtype=bool)
    return np.asarray(model.actuator_gaintype == int(kind))


def has_input_names(model: mujoco.MjModel) -> bool:
    """Return whether the model says what its controls mean."""
    return getattr(model, "actuator_ctrlspec", None) is not None


def input_names(model: mujoco.MjModel, actuator: int) -> tuple[str, ...]:
    """Return what the controls of a pid servo or a DC motor mean, in their order."""
    specs = getattr(model, "actuator_ctrlspec", None)
    if specs is None:
        return ("voltage",)
    return tuple(name for name, bit in INPUT_BITS.items() if int(specs[actuator]) & bit)


def setpoints_are_circular() -> bool:
    """Return whether set-points of rotations in space are the ones nearest to the length."""
    return VERSION >= CIRCULAR_SETPOINTS


def plugins_read_own_control() -> bool:
    """Return whether an actuator plugin reads its control behind actuators with several."""
    return VERSION >= OWN_CONTROLS


def measures_turned_sites() -> bool:
    """Return whether MuJoCo measures rotations right between sites turned on their bodies."""
    return VERSION >= TURNED_SITES


def least_silhouette() -> float:
    """Return where MuJoCo holds the denominators of an ellipsoid's silhouette; 0 for nowhere."""
    return 0.0 if VERSION >= SILHOUETTES else HELD_ABOVE


def static_sensors_feel_gravity() -> bool:
    """Return whether acceleration sensors on what no joint moves read gravity."""
    return VERSION >= STATIC_GRAVITY


def counts_true_weld_torques() -> bool:
    """Return whether the external wrenches of bodies hold the torque of a weld as it acts."""
    return VERSION >= TRUE_WELD_TORQUES


def counts_spatial_tendons() -> bool:
    """Return whether the external wrenches of bodies hold the forces of spatial tendons."""
    return VERSION >= TENDON_WRENCHES


def wrap_generation() -> WrapGeneration:
    """Return from which MuJoCo on tendons wrap around geoms with a side as they do here."""
    if VERSION >= LONG_WAYS:
        return "4.0"
    return "3.16" if VERSION >= INSIDE_BY_ANGLE else "3.10"


def is_fixed_tendon(model: mujoco.MjModel, tendon: int) -> bool:
    """Return whether a tendon is a linear combination of joints."""
    first = model.wrap_type[model.tendon_adr[tendon]]
    return bool(first == mujoco.mjtWrap.mjWRAP_JOINT)


def spring_yield(model: mujoco.MjModel, kind: str, i: int) -> float:
    """Return the stretch at which the spring of a joint (`jnt`) or `tendon` yields; 0 for none."""
    address = getattr(model, f"{kind}_plasticadr", None)
    if address is None or int(address[i]) == NO_STATE:
        return 0.0
    return float(getattr(model, f"{kind}_springyield")[i])
