"""Which entries of a controller's inputs are no valid numbers, in words."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.description import Signal
from mbcasadi.qp.input_guard import LARGEST_INPUT
from mbcasadi.spatial.quaternions import LEAST_MEASURED2
from mbcasadi.system.coordinates import quaternion_places

Array = NDArray[np.float64]


def bad_inputs(
    setup: Setup, signals: Sequence[Signal], inputs: Mapping[str, Array]
) -> tuple[str, ...]:
    """Return `q[7] (FL_hip) = nan` of each entry that is not finite, too large or out of bounds.

    Args:
        setup: the controller.
        signals: its inputs.
        inputs: by name, z among them.
    """
    names = {signal.name: signal.components for signal in signals}
    found: list[str] = []
    for key, value in inputs.items():
        values = np.asarray(value, dtype=float).ravel()
        bad = np.flatnonzero(~(np.abs(values) <= LARGEST_INPUT))
        found += [_entry(key, i, names.get(key, ()), values) for i in bad.tolist()]
    q = np.asarray(inputs["q"], dtype=float).ravel()
    for place in quaternion_places(setup.system):
        if np.sum(q[place : place + 4] ** 2) < LEAST_MEASURED2:
            found.append(f"q[{place}:{place + 4}] = {q[place : place + 4].tolist()}, no quaternion")
    for i, (parameter, value) in enumerate(
        zip(setup.tuning, inputs.get("tuning", ()), strict=True)
    ):
        if not parameter.lower <= value <= parameter.upper:
            ends = f"{parameter.lower:g} to {parameter.upper:g}"
            found.append(f"tuning[{i}] ({parameter.name}) = {value:g}, expected {ends}")
    return tuple(found)


def _entry(name: str, i: int, components: Sequence[str], values: Array) -> str:
    label = f" ({components[i]})" if i < len(components) else ""
    return f"{name}[{i}]{label} = {values[i]:g}"
