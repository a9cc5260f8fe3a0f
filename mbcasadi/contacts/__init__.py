"""Contacts of a mechanism: points on bodies, their rows, cones on their multipliers."""

from mbcasadi.contacts.constraints import contact_force_fun, with_contacts

__all__ = ["contact_force_fun", "with_contacts"]
