"""The reference and the mask of a spec as functions of time.

A motion is what the file adds to the configuration at the start. Positions, velocities and
accelerations come from one expression of `t` by differentiation; orientations are rotations
about the world's axes, `quat(t) = quat(rz) ∘ quat(ry) ∘ quat(rx) ∘ quat_start`, with the rates of
`motion.pose_rates`.

Slices of a law are a quantity and its rates, `theta.q`, `theta.v`, `theta.a`. A component of the
file moves an entry of the quantity. Other slices, such as `force.lam`, are moved by `slice.entry`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control import FrameTask, Task
from mbcasadi.control.tasks.task import Slot
from mbcasadi.motion.motions import pose_rates
from mbcasadi.motion.time_function import TimeFunction
from mbcasadi.shapes import require_name
from mbcasadi.spatial import Quat, multiply
from mbcasadi.system import System
from mbcasadi.system.coordinates import rate_names
from mbcasadi.validation.spec.common import MaskSwitch
from mbcasadi.validation.spec.signals import Component, component_expression, time_derivatives

Array = NDArray[np.float64]
AXES = "xyz"
RATES = {
    "theta.q": ("theta.v", "theta.a"),
    "q": ("v", "a"),
    "y": ("ydot", "yddot"),
    "setpoint.q": ("setpoint.v", ""),
}
"""The slices of velocity and acceleration of a slice of positions."""


def task_motion(
    task: Task,
    system: System,
    q0: Array,
    components: Mapping[str, Component],
    t: ca.SX,
) -> dict[str, ca.SX]:
    """Return the slices of a task's reference, by quantity, as expressions of `t`.

    Args:
        task: of the controller.
        system: the model.
        q0: (nq,) configuration at the start.
        components: joint, axis or row → motion that is added to the start.
        t: time, s.
    """
    slots = task.slots(system)
    held = task.hold_reference(system, q0).items()
    values = {quantity: ca.SX(ca.DM(value)) for quantity, value in held}
    turns = isinstance(task, FrameTask)
    names = [slot.components for slot in slots[: 3 if turns else None]]
    movable = [name for name in names[0] if all(name in each for each in names)]
    valid = task.components(system) if turns else movable
    for name, terms in components.items():
        require_name(f"entry in the reference of '{task.name}'", name, valid)
        if name in movable:
            x = component_expression(terms, t)
            for slot in slots[: len(names)]:
                values[slot.name.removeprefix(f"{task.name}.")][slot.components.index(name)] += x
                x = ca.jacobian(x, t)
    return values | (_turned(task, values, components, t) if isinstance(task, FrameTask) else {})


def _turned(
    task: FrameTask, values: Mapping[str, ca.SX], components: Mapping[str, Component], t: ca.SX
) -> dict[str, ca.SX]:
    """Return the slices of the orientation of a frame task, where something turns it."""
    angles = {
        axis: component_expression(components[f"r{axis}"], t)
        for axis in AXES
        if f"r{axis}" in components
    }
    if not angles:
        return {}
    rows = [AXES.index(axis) for axis in task.orientation]
    quat = _rotate_quaternion(values["quaternion"], angles)
    velocity, acceleration = pose_rates(t, ca.SX.zeros(3), quat)
    return {
        "quaternion": quat,
        "angular_velocity": velocity[3:][rows],
        "angular_acceleration": acceleration[3:][rows],
    }


def _rotate_quaternion(start: ca.SX, angles: Mapping[str, ca.SX]) -> ca.SX:
    """Return the start's quaternion, rotated about the world's x, then y, then z."""
    quat: Quat = (start[0], start[1], start[2], start[3])
    for axis, angle in angles.items():
        vector = [ca.sin(angle / 2) if a == axis else ca.SX(0) for a in AXES]
        quat = multiply((ca.cos(angle / 2), vector[0], vector[1], vector[2]), quat)
    return ca.vertcat(*quat)


def slot_motion(
    slots: Sequence[Slot], start: ArrayLike, components: Mapping[str, Component], system: System
) -> Callable[[float], Array]:
    """Return the reference as a function of time.

    Args:
        slots: of the law.
        start: (nref,) reference to which the motion is added.
        components: entry of the reference → motion.
        system: the model, whose joints with one coordinate can be moved.

    Raises:
        UnknownNameError: no entry of this name can be moved.
    """
    places = _places(slots)
    ref, t = ca.SX(ca.DM(np.asarray(start, dtype=float))), ca.SX.sym("t")
    entries = _entries(slots, places, rate_names(system))
    for name, terms in components.items():
        require_name("entry of the reference", name, list(entries))
        x = component_expression(terms, t)
        for place, value in zip(entries[name], (x, *time_derivatives(x, t)), strict=False):
            if place is not None:
                ref[place] += value
    return time_function(ref, t)


def _places(slots: Sequence[Slot]) -> dict[tuple[str, str], int]:
    """Return the place in the reference of each (slice, entry)."""
    pairs = [(slot.name, entry) for slot in slots for entry in slot.components]
    return {pair: k for k, pair in enumerate(pairs)}


def _entries(
    slots: Sequence[Slot], places: Mapping[tuple[str, str], int], joints: Sequence[str]
) -> dict[str, list[int | None]]:
    """Return the places of value, rate and acceleration by the name that a file uses."""
    rates = {name for position in RATES.values() for name in position}
    found: dict[str, list[int | None]] = {}
    for slot in slots:
        for entry in slot.components:
            place = places[slot.name, entry]
            if slot.name not in RATES:
                if slot.name not in rates:
                    found[f"{slot.name}.{entry}"] = [place]
            elif slot.name in ("theta.q", "y") or entry in joints:
                rate = [places.get((name, entry)) for name in RATES[slot.name]]
                found[entry] = [place, *rate]
    return found


def time_function(expression: ca.SX, t: ca.SX) -> Callable[[float], Array]:
    """Return an expression of `t` as a function from seconds to a vector."""
    function = ca.Function("reference", [t], [ca.densify(expression)], ["t"], ["ref"])
    return TimeFunction(function)


def constant_function(value: Array) -> Callable[[float], Array]:
    """Return a function of time that always returns this vector."""
    return lambda _now: value


def mask_schedule(
    names: Sequence[str], switches: Iterable[MaskSwitch]
) -> Callable[[float], Array] | None:
    """Return the mask as a function of time; None where nothing is switched.

    Raises:
        UnknownNameError: a switch names something that is no entry of the mask.
    """
    ordered = sorted(switches, key=lambda switch: switch.at)
    for switch in ordered:
        for name in (*switch.on, *switch.off):
            require_name("entry of the mask", name, names)
    if not ordered:
        return None

    def mask(now: float) -> Array:
        values = np.ones(len(names))
        for switch in ordered:
            if switch.at <= now:
                values[[name in switch.on for name in names]] = 1.0
                values[[name in switch.off for name in names]] = 0.0
        return values

    return mask
