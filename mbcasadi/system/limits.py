"""Ranges of controls, forces and joints as arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class Limits:
    """Limits of a mechanism; infinite where the model sets none.

    Attributes:
        ctrl: (nu, 2) range of each control u.
        force: (nu, 2) range of each actuator's scalar force.
        joint: (nj, 2) range of each joint in `joint_names`, m or rad.
        joint_force: (nj, 2) range of the summed actuator force on each of these joints.
        joint_names: slide and hinge joints, in the model's order.
    """

    ctrl: Array
    force: Array
    joint: Array
    joint_force: Array
    joint_names: tuple[str, ...] = ()


def infinite_ranges(count: int) -> Array:
    """Return (count, 2) infinite ranges."""
    return np.tile([-np.inf, np.inf], (count, 1))
