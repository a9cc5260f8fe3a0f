"""Rows of contact forces: pyramids and normal forces, wrenches of soles, quadratic cones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import casadi as ca

from mbcasadi.contacts.friction_cone import pyramid_rows, tuned_pyramid_rows
from mbcasadi.contacts.rows import ContactRows
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.control.tick.tuning import ContactValues
from mbcasadi.description import Contact
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.qp.rows import Row, Rows, Sizes

NAME = "contacts"
COMPONENTS = ("normal", "tangent 1", "tangent 2")


@final
@dataclass(frozen=True)
class ContactForces(Part):
    """The limits of all contacts' forces; the instant knows their rows by `NAME`."""

    def bind(self, design: Design) -> Bound:
        """Return pyramids, normal forces, wrenches of soles, and quadratic cones."""
        names = design.contact_names

        def rows(now: Instant, sizes: Sizes) -> list[Rows]:
            contacts = list(zip(design.contacts, now.contacts, strict=True))
            forces: ContactRows = now.known[NAME]
            return [
                friction_rows(contacts, names, now.contacts_on, forces, sizes),
                sole_rows(names, forces, sizes),
                cone_rows(contacts, names, forces, sizes),
            ]

        return Bound(NAME, rows=rows)


def _row(contact: str, name: str, limit: str, kind: str) -> Row:
    """Return what a row of a contact is."""
    row = Row(f"contact '{contact}': {name}", f"{limit} of {contact}", kind, unit="N")
    return row._replace(owner=("contact", contact), may_yield=kind != "quadratic cones")


def friction_rows(
    contacts: Sequence[tuple[Contact, ContactValues]],
    names: Sequence[str],
    on: ca.SX,
    contact_forces: ContactRows,
    sizes: Sizes,
) -> Rows:
    """Return friction pyramids, and limits of normal forces, of the contacts that have them.

    A contact that is off has no force: its rows are zero and have no bounds, so that none of them
    is ever active.

    Args:
        contacts: the contacts, with their values at this tick.
        names: one name for each.
        on: (nc,) one where a contact is on.
        contact_forces: their rows and forces.
        sizes: of the unknowns.
    """
    faces: list[ca.SX] = [ca.SX(0, 3 * len(contacts))]
    lower, upper, labels = [ca.SX(0, 1)], [ca.SX(0, 1)], list[Row]()
    for i, (contact, values) in enumerate(contacts):
        off = (1 - on[i]) * UNBOUNDED
        is_cone = contact.slides or contact.cone == "quadratic"
        if not is_cone and i not in contact_forces.soles:
            pyramid = _pyramid(contact, values)
            faces.append(at_contact(pyramid, i, len(contacts)))
            lower.append(-UNBOUNDED * ca.SX.ones(contact.sides))
            upper.append(-contact.adhesion * ca.SX(pyramid[:, 0]) + off)
            faces_of = [f"friction, face {k}" for k in range(contact.sides)]
            labels += [_row(names[i], face, "cone", "friction") for face in faces_of]
        if values.has_range or contact.slides:
            faces.append(at_contact(ca.sparsify(ca.DM([[1.0, 0.0, 0.0]])), i, len(contacts)))
            lower.append(values.min_force - off)
            highest = values.max_force
            upper.append(ca.SX(UNBOUNDED) if highest is None else highest + off)
            labels.append(_row(names[i], "normal force", "normal force", "normal forces"))
    matrices = of_forces(ca.vertcat(*faces), contact_forces, sizes)
    return sizes.rows(labels, ca.vertcat(*lower), ca.vertcat(*upper), 0, **matrices)


def sole_rows(names: Sequence[str], contact_forces: ContactRows, sizes: Sizes) -> Rows:
    """Return the cones of the wrenches of flat feet; those that are off have no bounds.

    Args:
        names: of the contacts.
        contact_forces: their rows and forces.
        sizes: of the unknowns.
    """
    labels: list[Row] = []
    for members, count in contact_forces.faces_of:
        label = " ".join(names[i] for i in members)
        limit, owner = f"wrench cone of {label}", ("sole", label)
        named = (f"sole '{label}': wrench cone, face {k}" for k in range(count))
        labels += [Row(name, limit, "wrench cones", owner) for name in named]
    faces, off = contact_forces.faces, contact_forces.faces_off * UNBOUNDED
    first = ca.SX(len(labels), sizes.m - faces.shape[1])
    return sizes.rows(
        labels, -UNBOUNDED * ca.SX.ones(len(labels)), off, C_lam=ca.horzcat(first, faces)
    )


def of_forces(faces: ca.SX, contact_forces: ContactRows, sizes: Sizes) -> dict[str, ca.SX]:
    """Return C_lam and C_w of rows over the contact forces (k, 3 nc)."""
    first = sizes.m - contact_forces.of_lam.shape[1]
    of_lam = ca.horzcat(ca.SX(faces.shape[1], first), contact_forces.of_lam)
    return {
        "C_lam": ca.sparsify(faces @ of_lam),
        "C_w": ca.sparsify(faces @ contact_forces.of_w),
    }


def _pyramid(contact: Contact, values: ContactValues) -> ca.DM | ca.SX:
    """Return the faces (sides, 3) of a contact's pyramid."""
    mu, outer = values.friction, contact.cone == "outer"
    if isinstance(mu, ca.SX):
        return tuned_pyramid_rows(mu, contact.sides, outer=outer)
    return pyramid_rows(mu, contact.sides, outer=outer)


def at_contact(rows: ca.DM | ca.SX, i: int, nc: int) -> ca.SX:
    """Return rows over one contact's force as rows over the forces of all `nc` contacts."""
    k = rows.shape[0]
    return ca.horzcat(ca.SX(k, 3 * i), ca.SX(rows), ca.SX(k, 3 * (nc - 1 - i)))


def cone_rows(
    contacts: Sequence[tuple[Contact, ContactValues]],
    names: Sequence[str],
    contact_forces: ContactRows,
    sizes: Sizes,
) -> Rows:
    """Return `mu f_n`, `f_t1`, `f_t2` of each contact with a quadratic cone.

    The apex is at zero, or at the largest pull of an adhesive contact. A contact that is off has no
    force: its rows are zero, inside its cone.

    Args:
        contacts: the contacts, with their values at this tick.
        names: one name for each.
        contact_forces: their rows and forces.
        sizes: of the unknowns.
    """
    parts, labels = [ca.SX(0, 3 * len(contacts))], list[Row]()
    apex: list[ca.SX] = []
    for i, (contact, values) in enumerate(contacts):
        if contact.cone == "quadratic" and not contact.slides:
            scaled = ca.diag(ca.vertcat(ca.SX(values.friction), 1, 1))
            parts.append(at_contact(scaled, i, len(contacts)))
            apex.append(ca.vertcat(-values.friction * contact.adhesion, 0, 0))
            cone = [f"friction cone, {component}" for component in COMPONENTS]
            labels += [_row(names[i], name, name, "quadratic cones") for name in cone]
    k = len(labels)
    matrices = of_forces(ca.vertcat(*parts), contact_forces, sizes)
    cones = k // len(COMPONENTS)
    at = ca.vertcat(ca.SX(0, 1), *apex)
    return sizes.rows(labels, at, at, cones=cones, **matrices)
