"""Rows of quadratic friction cones: `|(f_t1, f_t2)| <= mu f_n` as three rows of each contact."""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.control.inverse_dynamics.contacts.contact_groups import ContactRows
from mbcasadi.control.inverse_dynamics.inequalities import Rows, Sizes, at_contact, of_forces
from mbcasadi.control.inverse_dynamics.tuning import ContactValues
from mbcasadi.description import Contact

COMPONENTS = ("normal", "tangent 1", "tangent 2")


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
    parts, labels = [ca.SX(0, 3 * len(contacts))], []
    apex: list[ca.SX] = []
    for i, (contact, values) in enumerate(contacts):
        if contact.cone == "quadratic" and not contact.slides:
            scaled = ca.diag(ca.vertcat(ca.SX(values.friction), 1, 1))
            parts.append(at_contact(scaled, i, len(contacts)))
            apex.append(ca.vertcat(-values.friction * contact.adhesion, 0, 0))
            labels += [f"contact '{names[i]}': friction cone, {c}" for c in COMPONENTS]
    k = len(labels)
    matrices = of_forces(ca.vertcat(*parts), contact_forces, sizes)
    cones = k // len(COMPONENTS)
    at = ca.vertcat(ca.SX(0, 1), *apex)
    return sizes.rows(labels, at, at, cones=cones, **matrices)
