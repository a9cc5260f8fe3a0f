"""The controller as data: names, units and limits, and what a report may look at."""

import casadi as ca
import numpy as np

from mbcasadi.control.check import RESIDUALS
from mbcasadi.control.posture import COORDINATES, RATE_UNITS, RATES, UNITS, dotted, per
from mbcasadi.control.setup import FORCE_AXES, Setup
from mbcasadi.control.stages import Stages
from mbcasadi.description import Controller, Signal
from mbcasadi.system import System


def describe(
    setup: Setup, stages: Stages, function: ca.Function, z0: np.ndarray, monitor: ca.Function
) -> Controller:
    """Return the `Controller` of an inverse-dynamics law.

    Args:
        setup: the checked options.
        stages: the Functions around the QP solver.
        function: the whole law, (q, v, [act], ref, mask, z) → (u, z_next, status, residual).
        z0: (nz,) initial state.
        monitor: (q, v, [act], ref, mask) → (target, error, contact_force), for reports.
    """
    controls = setup.system.actuator_names
    held = tuple(f"u.{name}" for name in controls) if setup.fallback == "hold" else ()
    state = tuple(f"active.{name}" for name in stages.row_names) + held
    inputs = {
        "q": coordinates(setup.system),
        "v": rates(setup.system),
        "act": _plain("act", _act_names(setup.system)),
        "ref": _reference(setup),
        "mask": _plain("mask", setup.mask_names),
        "z": _plain("z", state),
    }
    outputs = {
        "u": _plain("u", controls),
        "z_next": _plain("z_next", state),
        "status": _plain("status", ("status",)),
        "residual": _plain("residual", RESIDUALS),
    }
    return Controller(
        name=function.name(),
        function=function,
        inputs=tuple(inputs[name] for name in function.name_in()),
        outputs=tuple(outputs[name] for name in function.name_out()),
        u_min=stages.u_min,
        u_max=stages.u_max,
        z0=z0,
        period=setup.period,
        stages=stages.parts,
        source=setup.system.name,
        notes=_notes(setup),
        monitor=monitor,
        monitors=_monitors(setup),
        contacts=setup.contacts,
    )


def coordinates(system: System) -> Signal:
    """Return names and units of q."""
    if system.tree is None:
        return _plain("q", tuple(f"q{i}" for i in range(system.nq)))
    joints = system.tree.joints
    names = tuple(dotted(j.name, c) for j in joints for c in COORDINATES[j.kind])
    return Signal("q", names, tuple(unit for j in joints for unit in UNITS[j.kind]))


def rates(system: System) -> Signal:
    """Return names and units of v."""
    if system.tree is None:
        return _plain("v", tuple(f"v{i}" for i in range(system.nv)))
    joints = system.tree.joints
    names = tuple(dotted(j.name, c) for j in joints for c in RATES[j.kind])
    return Signal("v", names, tuple(per(unit, "s") for j in joints for unit in RATE_UNITS[j.kind]))


def _reference(setup: Setup) -> Signal:
    names = tuple(f"{slot.name}.{one}" for slot in setup.slots for one in slot.components)
    return Signal("ref", names, tuple(unit for slot in setup.slots for unit in slot.units))


def _monitors(setup: Setup) -> tuple[Signal, ...]:
    rows = tuple(
        f"{task.name}.{one}" for task in setup.tasks for one in task.components(setup.system)
    )
    units = tuple(unit for task in setup.tasks for unit in task.units(setup.system))
    forces = tuple(f"{name}.{axis}" for name in setup.contact_names for axis in FORCE_AXES)
    return (
        Signal("target", rows, units),
        Signal("error", rows, units),
        Signal("contact_force", forces, ("N",) * len(forces)),
    )


def _notes(setup: Setup) -> dict[str, str]:
    return {
        "law": "inverse dynamics as a condensed QP",
        "tasks": ", ".join(task.name for task in setup.tasks),
        "friction": ", ".join(
            f"{name}: mu {contact.friction:g}, {contact.sides} sides inside the cone"
            for name, contact in zip(setup.contact_names, setup.contacts, strict=True)
        ),
        "status": "0 solved and verified; 1 feasible, not optimal; 2 infeasible; 3 bad input; "
        "4 failed check",
    }


def _act_names(system: System) -> tuple[str, ...]:
    return tuple(one.name for one in system.actuators if one.act is not None)


def _plain(name: str, components: tuple[str, ...]) -> Signal:
    return Signal(name, components, ("",) * len(components))
