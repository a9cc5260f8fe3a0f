"""The reference of a law over time: what the file adds to the reference at the start.

Slices of a law are a quantity and its rates, `theta.q`, `theta.v`, `theta.a`. A component of the
file moves an entry of the quantity; its rates are the exact derivatives of the same expression.
Other slices, such as `force.lam`, are moved by `slice.entry`.
"""

from collections.abc import Callable, Mapping, Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control.tasks.task import Slot
from mbcasadi.shapes import require_name
from mbcasadi.system import System
from mbcasadi.system.coordinates import rate_names
from mbcasadi.validation.spec.motion import time_function
from mbcasadi.validation.spec.signals import Component, component_expression, time_derivatives

Array = NDArray[np.float64]

RATES = {
    "theta.q": ("theta.v", "theta.a"),
    "q": ("v", "a"),
    "y": ("ydot", "yddot"),
    "setpoint.q": ("setpoint.v", ""),
}
"""The slices of velocity and acceleration of a slice of positions."""


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
