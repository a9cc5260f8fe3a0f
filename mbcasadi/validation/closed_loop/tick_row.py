"""The row of a recording: what one tick measured and computed."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.description import Contact, Controller
from mbcasadi.errors import ProblemError
from mbcasadi.plant import ContactForce, Measurement, Plant

Array = NDArray[np.float64]
FrameKind = Literal["site", "body", "geom"]
KINDS: tuple[FrameKind, ...] = ("site", "body", "geom")


MeasuredContacts = dict[tuple[str, str], tuple[ContactForce, Array]]
"""The force on each contact and where it is, by kind and name."""


def measured_forces(
    controller: Controller, plant: Plant, contacts: MeasuredContacts | None = None
) -> Array:
    """Return the forces that a controller measures: of its contacts, then of its loops.

    Args:
        controller: with `contacts` and `loop_forces`.
        plant: evaluated at its state.
        contacts: `measured_contacts` there, where they are known.
    """
    if contacts is None:
        contacts = measured_contacts(controller.contacts, plant)
    loops = []
    for name, row in controller.loop_forces:
        forces = plant.equality_forces(name)
        loops.append(forces[row] if forces.size else 0.0)
    return np.concatenate([_in_own_axes(controller.contacts, plant, contacts), loops])


def _in_own_axes(contacts: Sequence[Contact], plant: Plant, measured: MeasuredContacts) -> Array:
    """Return the forces (3 nc,) on the contacts: n, t1, t2 of each, N.

    The axes are those of the contact's own normal, in the world or in the body that is touched.
    """
    force = np.zeros((len(contacts), 3))
    for k, contact in enumerate(contacts):
        if contact.geoms is not None:
            normal = plant.force_between(*contact.geoms)[2]
            if not normal.any():
                continue  # the geoms do not touch
            axes = contact_axes(normal)
        else:
            axes = _axes(*map(float, contact.normal))
        if contact.other:
            axes = axes @ plant.frame_rotation(contact.other, cast(FrameKind, contact.other_kind)).T
        force[k] = axes @ measured[contact.kind, contact.frame][0].force
    return force.ravel()


@cache
def _axes(*normal: float) -> Array:
    """Return `contact_axes` of a normal, computed once: it is the same in all ticks."""
    return contact_axes(np.array(normal))


def measured_contacts(contacts: Sequence[Contact], plant: Plant) -> MeasuredContacts:
    """Return the force on each contact and where it is, by kind and name.

    Raises:
        ProblemError: a contact of the kind "contact" without its place.
    """
    measured: MeasuredContacts = {}
    for kind in KINDS:
        names = [contact.frame for contact in contacts if contact.kind == kind]
        if not names:
            continue
        for name, force in plant.contact_forces(names, kind).items():
            measured[kind, name] = force, plant.frame_position(name, kind)
    places = {}
    for contact in (contact for contact in contacts if contact.kind == "contact"):
        if contact.geoms is not None:
            measured["contact", contact.frame] = plant.force_between(*contact.geoms)[:2]
            continue
        if contact.place is None:
            raise ProblemError(
                f"contact {contact.frame!r} has no place on a body; expected one of "
                "mb.contacts_of(...), by its method as_contact"
            )
        places[contact.frame] = contact.place
    at_places = plant.contact_forces_at(places) if places else {}
    return measured | {("contact", name): found for name, found in at_places.items()}


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
