"""`System`, the mechanism as named Functions, and the functions that create one."""

from mbcasadi.system.contacts import GeometryContacts, LeftOut, contacts_of
from mbcasadi.system.equations import from_equations, from_lagrangian
from mbcasadi.system.frames import Carrier, FrameFunctions
from mbcasadi.system.from_mjcf import read_mjcf
from mbcasadi.system.functions import evaluate
from mbcasadi.system.geometry_contacts import GeometryContact
from mbcasadi.system.limits import Limits
from mbcasadi.system.mask import row_mask
from mbcasadi.system.redundancy import Redundancy
from mbcasadi.system.redundancy import redundancy as redundancy
from mbcasadi.system.rows import ConstraintRows
from mbcasadi.system.system import System

__all__ = [
    "Carrier",
    "ConstraintRows",
    "FrameFunctions",
    "GeometryContact",
    "GeometryContacts",
    "LeftOut",
    "Limits",
    "Redundancy",
    "System",
    "contacts_of",
    "evaluate",
    "from_equations",
    "from_lagrangian",
    "read_mjcf",
    "row_mask",
]

NOT_STARRED = ("redundancy",)
"""Public names that `import *` leaves out: they are words that people have variables of."""
