"""Names, units and limits of the columns of a recording."""

from dataclasses import dataclass

import mujoco
import numpy as np

from mbcasadi.description import Controller, Signal
from mbcasadi.mjcf.names import names as names_of
from mbcasadi.plant import Plant
from mbcasadi.plant.mocap import mocap_names

FREE_Q, FREE_V = ("x", "y", "z", "qw", "qx", "qy", "qz"), ("x", "y", "z", "rx", "ry", "rz")
CONTACT_FIELDS = tuple(f"contact_{name}" for name in ("normal", "tangential", "margin", "capacity"))
AXES = ("x", "y", "z")
SKIPPED = {mujoco.mjtJoint.mjJNT_FREE: 0, mujoco.mjtJoint.mjJNT_BALL: 3}
"""Entries of `FREE_Q` and `FREE_V` that joints with several coordinates lack."""

Limits = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Columns:
    """The columns of one field of a recording.

    Attributes:
        names, units: one for each column; a unit is "" where there is none, or it is not known.
        limits: (lower, upper) of each column, infinite where there is none; () for fields that
            have no limits.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    limits: Limits = ()


def columns_of(controller: Controller, plant: Plant) -> dict[str, Columns]:
    """Return field of `Recording` → its columns.

    Coordinates have the names of their joints, a free joint `x y z qw qx qy qz` behind its own;
    controls those of their actuators; inputs and monitored outputs those of the controller.
    """
    signals = {s.name: s for s in controller.inputs}
    result: dict[str, Columns] = {
        name: Columns(signals[name].components, signals[name].units)
        for name in ("ref", "tuning", "p", "mask", "z", "act")
        if name in signals
    }
    result |= {f"monitor.{s.name}": Columns(s.components, s.units) for s in controller.monitors}
    result |= _of_coordinates(plant.model) | _of_controls(controller, plant)
    result |= _of_contacts(controller)
    bodies = mocap_names(plant.model)
    result["mocap"] = Columns(
        tuple(f"{body}.{entry}" for body in bodies for entry in FREE_Q),
        tuple("m" if entry in AXES else "" for _ in bodies for entry in FREE_Q),
    )
    equalities = names_of(plant.model, "equality")
    result["equality_active"] = Columns(equalities, ("",) * len(equalities))
    return result


def _of_coordinates(model: mujoco.MjModel) -> dict[str, Columns]:
    """Return the columns of q, v, a and of forces on degrees of freedom."""
    q: list[tuple[str, str, tuple[float, float]]] = []
    names: list[str] = []
    none = (-np.inf, np.inf)
    for j, joint in enumerate(names_of(model, "joint")):
        skipped = SKIPPED.get(mujoco.mjtJoint(int(model.jnt_type[j])))
        if skipped is None:
            lower, upper = map(float, model.jnt_range[j])
            unit = dof_units(model)[len(names)]
            q.append((joint, unit, (lower, upper) if model.jnt_limited[j] else none))
            names.append(joint)
        else:
            for name in FREE_Q[skipped:]:
                q.append((f"{joint}.{name}", "m" if name in AXES else "", none))
            names += [f"{joint}.{name}" for name in FREE_V[skipped:]]
    units = dof_units(model)
    force = Columns(tuple(names), tuple("N" if unit == "m" else "N m" for unit in units))
    forces = ("actuator_force", "disturbance", "equality_force", "other_force")
    return {
        "q": Columns(*zip(*q, strict=True)) if q else Columns((), ()),
        "v": Columns(tuple(names), tuple(f"{unit}/s" for unit in units)),
        "a": Columns(tuple(names), tuple(f"{unit}/s²" for unit in units)),
    } | dict.fromkeys(forces, force)


def dof_units(model: mujoco.MjModel) -> tuple[str, ...]:
    """Return m or rad for each degree of freedom."""
    Kind = mujoco.mjtJoint
    units = {
        Kind.mjJNT_FREE: ("m",) * 3 + ("rad",) * 3,
        Kind.mjJNT_BALL: ("rad",) * 3,
        Kind.mjJNT_SLIDE: ("m",),
        Kind.mjJNT_HINGE: ("rad",),
    }
    return tuple(unit for kind in model.jnt_type for unit in units[Kind(int(kind))])


def _of_controls(controller: Controller, plant: Plant) -> dict[str, Columns]:
    """Return the columns of u: units as the controller says, limits of the controller."""
    names = names_of(plant.model, "actuator", plant.nu)
    outputs: dict[str, Signal] = {s.name: s for s in controller.outputs}
    units = outputs["u"].units if "u" in outputs else ()
    if len(units) != plant.nu or not any(units):
        units = _units_of_actuators(plant.model)
    limits = tuple(zip(controller.u_min.tolist(), controller.u_max.tolist(), strict=True))
    ours = Columns(names, units, limits)
    return {"u": ours, "u_applied": ours}


def _units_of_actuators(model: mujoco.MjModel) -> tuple[str, ...]:
    """Return the unit of each control that is a joint's force itself, or its position; else ""."""
    units = []
    for i in range(model.nu):
        joint = int(model.actuator_trnid[i, 0])
        kind, gear = int(model.actuator_trntype[i]), model.actuator_gear[i]
        unit = ""
        if kind == mujoco.mjtTrn.mjTRN_JOINT and gear[0] == 1 and not gear[1:].any():
            slides = int(model.jnt_type[joint]) == mujoco.mjtJoint.mjJNT_SLIDE
            gain, bias = float(model.actuator_gainprm[i, 0]), model.actuator_biasprm[i]
            fixed = int(model.actuator_gaintype[i]) == mujoco.mjtGain.mjGAIN_FIXED
            affine = int(model.actuator_biastype[i]) == mujoco.mjtBias.mjBIAS_AFFINE
            if fixed and not affine and gain == 1:
                unit = "N" if slides else "N m"
            elif fixed and affine and bias[1] == -gain:
                unit = "m" if slides else "rad"
        units.append(unit)
    return tuple(units)


def _of_contacts(controller: Controller) -> dict[str, Columns]:
    names = tuple(contact.frame for contact in controller.contacts)
    axes = tuple(f"{name}.{axis}" for name in names for axis in AXES)
    measured = tuple(f"{name}.{axis}" for name in names for axis in ("n", "t1", "t2"))
    measured += tuple(f"{name}.{row}" for name, row in controller.loop_forces)
    return {
        "contact_force": Columns(axes, ("N",) * len(axes)),
        "contact_position": Columns(axes, ("m",) * len(axes)),
        "f_measured": Columns(measured, ("N",) * len(measured)),
    } | dict.fromkeys(CONTACT_FIELDS, Columns(names, ("N",) * len(names)))
