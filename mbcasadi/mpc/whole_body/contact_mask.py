"""Which contacts of a system a mask of its rows has on, and back."""

from collections.abc import Sequence

import casadi as ca
import numpy as np

from mbcasadi.description import Contact
from mbcasadi.linalg.symbols import Sym
from mbcasadi.shapes import unique
from mbcasadi.system import System
from mbcasadi.system.mask import row_mask


def contacts_on(system: System, contacts: Sequence[Contact], mask: Sym) -> Sym:
    """Return (nc,) the entry of each contact in a mask of rows; ones where there is no mask.

    Raises:
        UnknownNameError: a contact that is no row of the system.
    """
    first = [rows[0] for rows in _rows_of(system, contacts)]
    return type(mask).ones(len(first)) if system.mask is None else mask[first]


def mask_of_contacts(system: System, contacts: Sequence[Contact], on: Sym) -> Sym:
    """Return the mask of rows with which contacts are on where `on` (nc,) is one, all else on."""
    places = np.full(system.nc, len(contacts))
    for i, rows in reversed([*enumerate(_rows_of(system, contacts))]):
        places[rows] = i
    return ca.vertcat(on, 1)[places.tolist()]


def _rows_of(system: System, contacts: Sequence[Contact]) -> list[list[int]]:
    """Return the rows of each contact, those of its body."""
    names = unique([contact.frame for contact in contacts])
    return [np.flatnonzero(row_mask(system, {name: 0}) == 0).tolist() for name in names]
