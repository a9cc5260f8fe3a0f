"""The row of a recording: what one tick measured and computed."""

from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description import Contact, Controller
from mbcasadi.plant import Measurement, Plant
from mbcasadi.validation.closed_loop.measured_forces import (
    FrameKind,
    measured_contacts,
    measured_forces,
)

Array = NDArray[np.float64]


def tick_row(
    controller: Controller,
    plant: Plant,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    measurement: Measurement,
) -> dict[str, ArrayLike]:
    """Return the fields of a `Recording` at one tick, but `u_applied` and `disturbance`.

    Args:
        controller: of the loop.
        plant: evaluated at the state of the tick, under the control that acts.
        inputs, outputs: of the controller, by name.
        measurement: of the plant at this state.
    """
    return {
        "t": inputs["t"][0],
        **{name: inputs[name] for name in ("q", "v", "act", "ref", "tuning", "p", "mask", "z")},
        "mocap": plant.mocap_poses,
        "a": measurement.a,
        "u": outputs["u"],
        **{name: outputs[name][0] if name in outputs else 0 for name in ("status", "flags")},
        "check": np.abs(outputs.get("residual", np.zeros(1))).max(initial=0.0),
        "actuator_force": measurement.actuator_force,
        "equality_active": plant.data.eq_active,
        "equality_force": measurement.equality_force,
        "other_force": measurement.constraint_force - measurement.equality_force,
        "closure": measurement.closure,
        "residual": measurement.residual,
        "energy": measurement.energy,
        **_contact_fields(controller, plant, inputs),
    }


def _contact_fields(
    controller: Controller, plant: Plant, inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """Return what the plant exerts on each contact, and what the controller was given of it.

    A controller that takes no measured forces is recorded with those of this moment.
    """
    count = len(controller.contacts)
    force, place = np.zeros((count, 3)), np.zeros((count, 3))
    normal, tangential = np.zeros(count), np.zeros(count)
    margin, capacity = np.zeros(count), np.zeros(count)
    measured, given = measured_contacts(controller.contacts, plant), inputs.get("f_measured")
    for k, contact in enumerate(controller.contacts):
        found, position = measured[contact.kind, contact.frame]
        place[k] = _seen_from_other(contact, plant, position)
        force[k] = found.force
        normal[k], tangential[k] = found.normal, found.tangential
        margin[k], capacity[k] = found.margin, found.capacity
    return {
        "contact_force": force,
        "contact_normal": normal,
        "contact_tangential": tangential,
        "contact_margin": margin,
        "contact_capacity": capacity,
        "contact_position": place,
        "f_measured": measured_forces(controller, plant, measured) if given is None else given,
    }


def _seen_from_other(contact: Contact, plant: Plant, position: Array) -> Array:
    """Return the position of a contact in the axes of the body that it touches, m."""
    if not contact.other:
        return position
    kind = cast(FrameKind, contact.other_kind)
    away = position - plant.frame_position(contact.other, kind)
    return np.asarray(plant.frame_rotation(contact.other, kind).T @ away)
