"""Ranges of controls and actuator forces."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import numbers_of
from mbcasadi.system.system import System

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ranges:
    """Numbers that bound the actuators: (nu, 2) each, infinite where there are none."""

    ctrl: Array
    force: Array


def require_ranges(
    system: System, ctrl_limits: ArrayLike | None, force_limits: ArrayLike | None
) -> Ranges:
    """Return the ranges of controls and actuator forces, the model's unless given.

    Raises:
        ShapeError: not (nu, 2), or NaN.
        ProblemError: a lower limit above its upper limit.
    """
    options = {"ctrl_limits": ctrl_limits, "force_limits": force_limits}
    model = {"ctrl_limits": system.limits.ctrl, "force_limits": system.limits.force}
    ranges = {}
    for label, limits in options.items():
        array = numbers_of(label, model[label] if limits is None else limits)
        if array.shape != (system.nu, 2) or np.any(np.isnan(array)):
            raise ShapeError(
                f"{label} has shape {array.shape}, expected ({system.nu}, 2), one (low, high) for "
                "each actuator, without NaN"
            )
        for name, (low, high) in zip(system.actuator_names, array, strict=True):
            if low > high:
                raise ProblemError(
                    f"{label} of actuator '{name}': {low} is above {high}; expected low <= high"
                )
        ranges[label] = array.copy()
    return Ranges(ranges["ctrl_limits"], ranges["force_limits"])


def clip(value: ca.SX, ranges: Array) -> ca.SX:
    """Return each entry inside its range (n, 2); a range that excludes nothing costs nothing."""
    clipped = []
    for i, (low, high) in enumerate(ranges):
        entry = value[i]
        if high < UNBOUNDED:
            entry = ca.fmin(entry, high)
        if low > -UNBOUNDED:
            entry = ca.fmax(entry, low)
        clipped.append(entry)
    return ca.vertcat(*clipped)


def finite(bounds: Array) -> ca.SX:
    """Return bounds with ±UNBOUNDED in place of infinity."""
    return ca.SX(ca.DM(np.clip(bounds, -UNBOUNDED, UNBOUNDED)))
