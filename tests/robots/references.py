"""References as functions of time: smooth steps and displacements of what a task holds."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mbcasadi.control import InverseDynamicsQP

Array = NDArray[np.float64]
Reference = Callable[[float], Array]


def smooth(t: float, start: float, end: float) -> tuple[float, float, float]:
    """Return `10 s³ - 15 s⁴ + 6 s⁵` from 0 to 1 between two times, with both its rates."""
    s, T = min(max((t - start) / (end - start), 0.0), 1.0), end - start
    return (
        s**3 * (10 - 15 * s + 6 * s**2),
        30 * s**2 * (1 - s) ** 2 / T,
        60 * s * (1 - s) * (1 - 2 * s) / T**2,
    )


def displace(
    ref: Array, law: InverseDynamicsQP, task: str, way: Array, rates: tuple[float, ...]
) -> None:
    """Add a displacement (3,) with its share and two rates to the position of a task."""
    for quantity, rate in zip(("position", "velocity", "acceleration"), rates, strict=True):
        ref[law.reference_slices[f"{task}.{quantity}"]] += rate * way


def swings(
    law: InverseDynamicsQP, q0: Array, task: str, way: Array, frequency: float, stop: float
) -> Reference:
    """Return the reference of a task that goes by twice `way` (3,) and back, from 0.5 s on."""
    rest, rate = law.reference_at(q0), 2 * np.pi * frequency

    def at(t: float) -> Array:
        ref, phase = rest.copy(), rate * (t - 0.5)
        if 0.5 <= t < stop:
            wave = (1 - np.cos(phase), rate * np.sin(phase), rate**2 * np.cos(phase))
            displace(ref, law, task, way, wave)
        return ref

    return at
