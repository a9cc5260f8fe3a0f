"""The kind of each actuator, in MJCF's words, from its gain, bias and activation."""

import numpy as np

from mbcasadi.description import Actuator
from mbcasadi.system.system import System

KINDS = (
    *(
        "motor",
        "position",
        "velocity",
        "intvelocity",
        "damper",
        "pid",
        "muscle",
        "dcmotor",
        "adhesion",
    ),
    "general",
)


def actuator_kinds(system: System) -> dict[str, tuple[str, ...]]:
    """Return the names of the actuators by kind, kinds without any left out.

    A system that is given by equations has motors: its control is the force.
    """
    kinds = {actuator.name: kind_of(actuator) for actuator in system.actuators}
    of_names = {name: kinds.get(name, "motor") for name in system.actuator_names}
    return {
        kind: tuple(name for name, own in of_names.items() if own == kind)
        for kind in KINDS
        if kind in of_names.values()
    }


def kind_of(actuator: Actuator) -> str:
    """Return which of MJCF's shortcuts gives this gain, bias and activation."""
    gain, bias = np.array(actuator.gain), np.array(actuator.bias)
    if actuator.muscle_gain is not None or actuator.muscle_times is not None:
        return "muscle"
    if actuator.motor is not None:
        return "dcmotor"
    if actuator.pid is not None:
        return "pid"
    if actuator.transmission == "body":
        return "adhesion"
    if not (np.all(np.isfinite(gain)) and np.all(np.isfinite(bias))):
        return "general"
    k, plain = gain[0], not np.any(gain[1:]) and bias[0] == 0
    integrated = actuator.dynamics == "integrator"
    if plain and k and bias[1] == -k:  # k (u - length) - kv velocity
        return "intvelocity" if integrated else "position"
    if integrated:
        return "general"
    if plain and k and not bias[1] and bias[2] == -k:
        return "velocity"
    if plain and not np.any(bias):
        return "motor" if actuator.dynamics == "none" else "general"
    is_damper = not k and not gain[1] and gain[2] < 0 and not np.any(bias)
    return "damper" if is_damper else "general"
