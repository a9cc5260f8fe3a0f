"""Control laws of constrained mechanisms, one in each file; every one becomes C as it is."""

from mbcasadi.control.laws.computed_torque import computed_torque
from mbcasadi.control.laws.law import At, Command, Law
from mbcasadi.control.laws.making import make_law

__all__ = ["At", "Command", "Law", "computed_torque", "make_law"]
