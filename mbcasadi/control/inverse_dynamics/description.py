"""The controller as data: names, units and limits, and what a report may read."""

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.priorities.levels import levels_of
from mbcasadi.control.inverse_dynamics.residuals import RESIDUALS
from mbcasadi.control.inverse_dynamics.softened import word_names
from mbcasadi.control.inverse_dynamics.tick import Stages
from mbcasadi.control.limits.soft_limits import soft_rows
from mbcasadi.control.safe_output.safe_output import DESCRIPTIONS
from mbcasadi.control.tasks.reference import slot_signal
from mbcasadi.control.tick.inputs import input_signals
from mbcasadi.description import Contact, Controller, Signal
from mbcasadi.description.status import QP_STATUS
from mbcasadi.system.coordinates import controls, unitless_signal

LEVELS_IN_FLOAT = (
    "strict levels solve several problems in sequence, each within the rounding of those before it"
)


def controller_data(
    setup: Setup, stages: Stages, function: ca.Function, z0: np.ndarray, monitor: ca.Function
) -> Controller:
    """Return the `Controller` of an inverse-dynamics law.

    Args:
        setup: the checked options.
        stages: the Functions around the QP solver.
        function: the whole law, (q, v, [act], ref, [tuning], mask, z) → (u, z_next,
            status, flags, residual).
        z0: (nz,) initial state.
        monitor: (q, v, [act], ref, [tuning], mask) → (target, error, contact_force), for
            reports.
    """
    state = active_names(setup, stages) + stages.safe.components
    state += setup.memory_names
    inputs = input_signals(
        setup.system, slot_signal(setup.slots), setup.tuning, setup.mask_names, state
    )
    inputs |= {signal.name: signal for each in setup.bound for signal in each.inputs}
    soft = [each.about for each in soft_rows(stages.about, setup.soft)]
    outputs = {signal.name: signal for each in setup.bound for signal in each.outputs}
    outputs |= {
        "relaxed": unitless_signal("relaxed", word_names(len(soft))),
        "slack": Signal("slack", tuple(x.name for x in soft), tuple(x.unit for x in soft)),
        "u": controls(setup.system),
        "z_next": unitless_signal("z_next", state),
        "status": unitless_signal("status", ("status",)),
        "flags": unitless_signal("flags", ("flags",)),
        "residual": unitless_signal("residual", RESIDUALS),
        "levels": unitless_signal("levels", tuple(level.name for level in levels_of(setup))),
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
        stages=stages.qp,
        source=setup.system.name,
        notes=_notes(setup),
        monitor=monitor,
        monitors=_monitors(setup),
        contacts=tuple(setup.contacts),
        loop_forces=tuple(
            (x.owner[1], x.row) for x in setup.weighed_forces[3 * len(setup.contacts) :]
        ),
        delay=setup.delay_ticks,
        tuning=setup.tuning,
        parameters=setup.system.parameters.entries,
        needs_double=LEVELS_IN_FLOAT if setup.levels else "",
        emergency=stages.safe.emergency(setup.problems * len(stages.row_names)),
    )


def active_names(setup: Setup, stages: Stages) -> tuple[str, ...]:
    """Return a name for each entry of the active sets; with levels, they have numbers from 1."""
    labels = [f"active{k + 1}" for k in range(setup.problems)] if setup.levels else ["active"]
    return tuple(f"{label}.{row}" for label in labels for row in stages.row_names)


def _monitors(setup: Setup) -> tuple[Signal, ...]:
    rows = tuple(
        f"{task.name}.{row}" for task in setup.tasks for row in task.components(setup.system)
    )
    units = tuple(unit for task in setup.tasks for unit in task.units(setup.system))
    forces = tuple(x.name for x in setup.weighed_forces[: 3 * len(setup.contacts)])
    return (
        Signal("target", rows, units),
        Signal("error", rows, units),
        Signal("contact_force", forces, ("N",) * len(forces)),
    )


def _notes(setup: Setup) -> dict[str, str]:
    found = {key: text for each in setup.bound for key, text in each.notes.items()}
    found |= {"creeping contacts": setup.creep[1]} if setup.creep[1] else {}
    return found | {
        "law": "inverse dynamics as a condensed QP",
        "tasks": ", ".join(task.name for task in setup.tasks),
        "friction": ", ".join(
            f"{name}: mu {contact.friction:g}, {_cone_of(contact)}"
            for name, contact in zip(setup.contact_names, setup.contacts, strict=True)
        ),
        "status": QP_STATUS.summary(DESCRIPTIONS[setup.safe_output_kind]),
    }


def _cone_of(contact: Contact) -> str:
    """Return what stands for a contact's friction cone, in words."""
    if contact.slides:
        return "sliding"
    if contact.cone == "quadratic":
        return "the quadratic cone"
    return f"{contact.sides} sides {'around' if contact.cone == 'outer' else 'inside'} the cone"
