"""The deceleration of joints that their actuators can be relied on for, at any pose."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.system import System
from mbcasadi.system.ranges import Ranges
from mbcasadi.system.sizes import resting_actuation

Array = NDArray[np.float64]

RELIED_ON = 0.5
"""Share of the deceleration that actuators at their limits give against gravity."""


class JointIndices(NamedTuple):
    """Indices of joints in v and in q."""

    dofs: tuple[int, ...]
    places: tuple[int, ...]


def usual_braking(
    system: System, joints: JointIndices, ends: tuple[Array, Array], ranges: Ranges
) -> Array:
    """Return a share of the deceleration that is there at all sampled poses, NaN where none is.

    A servo brakes with what it gives at the stop, with the set-point at the far end of its range.

    Args:
        system: read from a model.
        joints: indices of the joints in v and in q.
        ends: (k,) lower and upper stops, infinite for none.
        ranges: of controls and actuator forces.
    """
    dofs, least = list(joints.dofs), np.full(len(joints.dofs), np.inf)
    most = _summed_limits(system)
    for q, _ in system.scales.states:
        M, B = np.array(system.mass_matrix(q)), np.abs(resting_actuation(system, q))
        load = np.abs(np.array(system.gravity_force(q)).ravel())
        most_here = np.minimum(most, _at_most(B, np.abs(ranges.force).min(axis=1)))
        for stops, sign in zip(ends, (1.0, -1.0), strict=True):
            pose = np.where(np.isfinite(stops), stops, q[list(joints.places)])
            strength = _strength(system, _posed(q, joints.places, pose), ranges, sign)
            free = np.minimum(strength, most_here) - load
            least = np.minimum(least, (free / np.diag(M))[dofs])
    return np.where(least > 0, RELIED_ON * least, np.nan)


def _posed(q: Array, places: tuple[int, ...], values: Array) -> Array:
    pose = np.array(q, dtype=float).ravel()
    pose[list(places)] = values
    return pose


def _strength(system: System, q: Array, ranges: Ranges, sign: float) -> Array:
    """Return the largest force (nv,) along a direction, 1 or -1, of controls within their range."""
    rest, act = np.zeros(system.nv), [np.zeros(system.na)] if system.na else []
    ends = [np.array(system.actuator_force(q, rest, u, *act)).ravel() for u in ranges.ctrl.T]
    strength: Array = np.maximum(np.max(sign * np.array(ends), axis=0), 0.0)
    return strength


def _summed_limits(system: System) -> Array:
    """Return the limits (nv,) of summed actuator forces on joints, infinite for none."""
    most = np.full(system.nv, np.inf)
    assert system.tree is not None
    dofs = {joint.name: joint.dof for joint in system.tree.joints}
    for name, range_ in zip(system.limits.joint_names, system.limits.joint_force, strict=True):
        most[dofs[name]] = np.abs(range_).min()
    return most


def _at_most(B: Array, force: Array) -> Array:
    """Return `B |p|` (nv,), infinite where a force without a limit acts."""
    unlimited = ~np.isfinite(force)
    acts = np.any(B[:, unlimited] > 0, axis=1)
    return np.where(acts, np.inf, B @ np.where(unlimited, 0.0, force))
