"""Limits of joints, motors and distances as entries of the input `tuning`.

- `<joint>.range.lower`, `<joint>.range.upper`: where the joint has a range, within it, margins
  included; `<joint>.speed` where a velocity is limited;
- `<actuator>.force.lower`, `<actuator>.force.upper`, N or N m, beside the actuator's own limits;
- `<actuator>.rate`, `.stall_force`, `.no_load_speed`, `.power`, of those that are limited;
- `<constraint>.loop_force.lower`, `.upper`, or `.loop_force.x.lower` and so on, where limited;
- `distances.margin`, m.

They bound the solution of the QP. The safe output keeps the limits of the model and the options.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.limits.actuator_limits import KINDS, LimitedActuators
from mbcasadi.control.inverse_dynamics.limits.distance_limits import LimitedDistances
from mbcasadi.control.inverse_dynamics.limits.joint_limits import LimitedJoints
from mbcasadi.control.inverse_dynamics.limits.loop_force_limits import LimitedRow
from mbcasadi.description import TuningParameter
from mbcasadi.system.actuator_model import ActuatorModel

NO_LIMIT = 1e9
"""N or N m, a force that no actuator reaches."""

LEAST_SPEED = 1e-6
"""Least no-load speed, as a share of the one that the controller is built with."""

ENDS = ("lower", "upper")


def limit_parameters(
    actuators: tuple[str, ...],
    limited: LimitedActuators | None,
    loops: Sequence[LimitedRow],
    joints: LimitedJoints | None,
    distances: LimitedDistances | None,
) -> list[TuningParameter]:
    """Return the entries of the limits that a controller has."""
    entries = []
    for i, name in enumerate(actuators):
        entries.append(TuningParameter(f"{name}.force.lower", -NO_LIMIT, -NO_LIMIT, NO_LIMIT))
        entries.append(TuningParameter(f"{name}.force.upper", NO_LIMIT, -NO_LIMIT, NO_LIMIT))
        for kind in KINDS if limited is not None else ():
            value = float(getattr(limited, kind)[i])
            if np.isfinite(value):
                least = LEAST_SPEED * value if kind == "no_load_speed" else 0.0
                entries.append(TuningParameter(f"{name}.{kind}", value, least, NO_LIMIT))
    for row in loops:
        for end, value in zip(ENDS, (row.lower, row.upper), strict=True):
            if np.isfinite(value):
                label = f"{row.entry}.{end}"
                entries.append(TuningParameter(label, value, -NO_LIMIT, NO_LIMIT))
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
        if name.endswith(".lower") and upper in entries:
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


def tuned_actuator_limits(
    limits: LimitedActuators, names: Sequence[str], entries: Mapping[str, ca.SX]
) -> Mapping[str, list[ca.SX | float]]:
    """Return the limits of all actuators by their kind, with their entries."""
    return {
        kind: [
            entries.get(f"{name}.{kind}", float(value))
            for name, value in zip(names, getattr(limits, kind), strict=True)
        ]
        for kind in KINDS
    }


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
