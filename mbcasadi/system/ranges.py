"""Ranges of controls and actuator forces."""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import real_array
from mbcasadi.system.system import System

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ranges:
    """Numbers that bound the actuators: (nu, 2) each, infinite where there are none.

    Attributes:
        ctrl, force: of controls and of actuator forces.
        clips: whether the actuators clip their force themselves, as with the model's own range; a
            limit that is given must be kept by the control.
    """

    ctrl: Array
    force: Array
    clips: bool = True


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
        array = real_array(label, model[label] if limits is None else limits)
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
    return Ranges(ranges["ctrl_limits"], ranges["force_limits"], force_limits is None)


def position_ranges(system: System) -> tuple[Array, Array]:
    """Return the lowest and highest q (nq,) of joints with a range, infinite for others."""
    tree = system.tree
    assert tree is not None  # of a system that is read from a model
    low, high = np.full(system.nq, -np.inf), np.full(system.nq, np.inf)
    places = {joint.name: joint.qpos for joint in tree.joints}
    for name, ends in zip(system.limits.joint_names, system.limits.joint, strict=True):
        low[places[name]], high[places[name]] = ends
    return low, high


def force_range(
    names: Sequence[str], ranges: Ranges, lowest: ca.SX, highest: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """Return the range of the forces (nu,) that the controls command, inside that of the forces.

    Where the force clips itself, a command beyond its range gives the nearest end; where the limit
    is given, the range is empty then, its lower end above its upper one.

    Args:
        names: of the actuators.
        ranges: of controls and forces.
        lowest, highest: (nu,) ends of the forces that the controls command.

    Raises:
        ProblemError: ends that depend on no state and lie beyond the range of the force.
    """
    for i, (name, (low, high)) in enumerate(zip(names, ranges.force, strict=True)):
        least, most = lowest[i], highest[i]
        if not (least.is_constant() and most.is_constant()):
            continue
        if float(most) < low or float(least) > high:
            raise ProblemError(
                f"actuator '{name}': its control commands forces from {float(least):g} to "
                f"{float(most):g}, its force is limited to {low:g} to {high:g}; expected limits "
                "with a common part, in ctrl_limits, force_limits or the model's ranges"
            )
    if ranges.clips:
        return clip(lowest, ranges.force), clip(highest, ranges.force)
    ends = finite(ranges.force[:, 0]), finite(ranges.force[:, 1])
    return ca.fmax(lowest, ends[0]), ca.fmin(highest, ends[1])


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
