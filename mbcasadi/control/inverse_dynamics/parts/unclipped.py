"""The ranges of servos' forces without the ends at which they are clipped.

A force that is clipped does not depend on the speed: in the plant the inertia K₂ that the servo
adds, see `servo_map.py`, is gone, and what is light without it moves by `1 + K₂/I` times what was
planned. So the ends of the range are kept clear, by more the more of its inertia a servo loses:

    |p - middle| <= (1 - (1 - UNCLIPPED) s) half,    s = 1 - A₁/A₁' = K₂/(I + K₂) for one step,

A₁' being that of a constant force. Where nothing is lost, of motors and of plants with explicit
steps, the range stays. What is left absorbs what the law's model gets wrong: a speed that differs
by `δ` from the predicted one makes a force that differs by `kd δ`.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.parts.servos import Servos
from mbcasadi.model.transmission import moment_row
from mbcasadi.system import System
from mbcasadi.system.ranges import Ranges

Array = NDArray[np.float64]

UNCLIPPED = 0.9
"""Share of its range that the force of a servo keeps to which would lose all of its inertia: an
error of 10 % of the motion of a tick then does not clip it."""


def unclipped_ranges(system: System, servos: Servos, ranges: Ranges) -> Ranges:
    """Return the ranges without the ends at which servos are clipped.

    Args:
        system: read from a model, whose ranges clip.
        servos: of the controller.
        ranges: of controls and forces, which may be narrower.
    """
    force, clips = ranges.force.copy(), clipping_ranges(system)
    for i, share in zip(servos.actuators, lost_shares(servos), strict=True):
        low, high = clips[i]
        if np.all(np.isfinite(clips[i])):
            left = (1 - UNCLIPPED) * share * (high - low) / 2
            force[i] = np.clip(np.clip(force[i], low + left, high - left), *force[i])
    return replace(ranges, force=force)


def lost_shares(servos: Servos) -> Array:
    """Return (k,) the share of its inertia during a tick that each servo loses once it is clipped.

    At the pose, among those sampled, at which it moves least.
    """
    shares = []
    for servo, seen in zip(servos.coordinates, servos.inertias.T, strict=True):
        least = replace(servo, inertia=float(seen.min()))
        free = replace(least, kp=0.0, kd=0.0)
        shares.append(1 - servos.plant.map_of(least).fall / servos.plant.map_of(free).fall)
    return np.maximum(shares, 0.0)


def clipping_ranges(system: System) -> Array:
    """Return (nu, 2) the forces at which each actuator is clipped, by its own range or its joint's.

    The range of a joint's sum counts where one actuator alone acts on it.
    """
    tree, ranges = system.tree, system.limits.force.copy()
    assert tree is not None
    rows = [moment_row(tree, each, ca.SX(tree.q0)) for each in system.actuators]
    B = np.array(ca.evalf(ca.vertcat(*rows)))
    for joint in tree.joints:
        acting = np.flatnonzero(B[:, joint.dof])
        if joint.force_range is not None and len(acting) == 1:
            ends = np.sort(np.array(joint.force_range) / B[acting[0], joint.dof])
            ranges[acting[0]] = np.clip(ranges[acting[0]], *ends)
    return ranges
