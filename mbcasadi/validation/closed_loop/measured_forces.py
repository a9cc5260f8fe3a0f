"""The forces of the plant's contacts and loops at those of a controller."""

from collections.abc import Sequence
from functools import cache
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.description import Contact, Controller
from mbcasadi.errors import ProblemError
from mbcasadi.plant import ContactForce, Plant

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
        if contact.place is None:
            raise ProblemError(
                f"contact {contact.frame!r} has no place on a body; expected one of "
                "mb.contacts_of(...), by its method as_contact"
            )
        places[contact.frame] = contact.place
    at_places = plant.contact_forces_at(places) if places else {}
    return measured | {("contact", name): found for name, found in at_places.items()}
