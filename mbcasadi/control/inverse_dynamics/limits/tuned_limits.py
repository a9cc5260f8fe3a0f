"""Limits of joints, motors and distances as entries of the input `tuning`.

- `<joint>.range.lower`, `<joint>.range.upper`: where the joint has a range, within it, margins
  included; `<joint>.speed` where a velocity is limited;
- `<actuator>.force.lower`, `<actuator>.force.upper`, N or N m, beside the actuator's own limits;
- `distances.margin`, m.

They bound the solution of the QP. The safe output keeps the limits of the model and the options.
"""

from collections.abc import Mapping
from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.limits.distance_limits import LimitedDistances
from mbcasadi.control.inverse_dynamics.limits.joint_limits import LimitedJoints
from mbcasadi.description import TuningParameter
from mbcasadi.system.actuator_model import ActuatorModel

NO_LIMIT = 1e9
"""N or N m, a force that no actuator reaches."""

ENDS = ("lower", "upper")


def limit_parameters(
    actuators: tuple[str, ...],
    joints: LimitedJoints | None,
    distances: LimitedDistances | None,
) -> list[TuningParameter]:
    """Return the entries of the limits that a controller has."""
    entries = []
    for name in actuators:
        entries.append(TuningParameter(f"{name}.force.lower", -NO_LIMIT, -NO_LIMIT, NO_LIMIT))
        entries.append(TuningParameter(f"{name}.force.upper", NO_LIMIT, -NO_LIMIT, NO_LIMIT))
    if joints is not None:
        for k, name in enumerate(joints.names):
            low, high = float(joints.lower[k]), float(joints.upper[k])
            for end, value in zip(ENDS, (low, high), strict=True):
                if np.isfinite(value):
                    entries.append(TuningParameter(f"{name}.range.{end}", value, low, high))
            speed = float(joints.velocity[k])
            if np.isfinite(speed):
                entries.append(TuningParameter(f"{name}.speed", speed, 0.0, speed))
    if distances is not None:
        entries.append(TuningParameter("distances.margin", distances.limits.margin, unit="m"))
    return entries


def limits_in_order(entries: Mapping[str, ca.SX]) -> ca.SX:
    """Return whether no lower limit is above its upper one."""
    ordered = [ca.SX(1)]
    for name, value in entries.items():
        upper = name.removesuffix("lower") + "upper"
        if name.endswith((".force.lower", ".range.lower")) and upper in entries:
            ordered.append(value <= entries[upper])
    return ca.mmin(ca.vertcat(*ordered))


def tuned_joints(
    joints: LimitedJoints | None, entries: Mapping[str, ca.SX]
) -> LimitedJoints | None:
    """Return the limits of joints with their entries."""
    if joints is None or not any(name.endswith((".range.lower", ".speed")) for name in entries):
        return joints
    columns = {
        "lower": [entries.get(f"{x}.range.lower", ca.SX(v)) for x, v in _named(joints, "lower")],
        "upper": [entries.get(f"{x}.range.upper", ca.SX(v)) for x, v in _named(joints, "upper")],
        "velocity": [entries.get(f"{x}.speed", ca.SX(v)) for x, v in _named(joints, "velocity")],
    }
    lower, upper, velocity = (ca.vertcat(*column) for column in columns.values())
    return replace(joints, lower=lower, upper=upper, velocity=velocity)


def _named(joints: LimitedJoints, key: str) -> list[tuple[str, float]]:
    return list(zip(joints.names, map(float, getattr(joints, key)), strict=True))


def tuned_actuators(
    actuators: ActuatorModel, names: tuple[str, ...], entries: Mapping[str, ca.SX]
) -> ActuatorModel:
    """Return the ranges of actuator forces, with their entries."""
    if not names or f"{names[0]}.force.lower" not in entries:
        return actuators
    low, high = (ca.vertcat(*(entries[f"{name}.force.{end}"] for name in names)) for end in ENDS)
    lower = ca.fmin(ca.fmax(actuators.lower, low), actuators.upper)
    upper = ca.fmax(ca.fmin(actuators.upper, high), actuators.lower)
    return replace(actuators, lower=lower, upper=upper, bounded=(True,) * len(names))
