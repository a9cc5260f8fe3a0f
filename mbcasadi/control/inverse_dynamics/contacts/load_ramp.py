"""A contact that is switched on takes its load gradually."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.tuning import ContactValues
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.shapes import require_positive


@dataclass(frozen=True)
class LoadRamp:
    """How fast a contact takes its load.

    While a contact is off, z remembers that it is unloaded, `r = 1`; from the tick on at which it
    is switched on, r falls to zero within the duration, and its normal force is bounded by

        f_n <= min_force + (1 - r) force.

    At r = 0 only `max_force` bounds it. A controller starts with all contacts loaded. Before a
    contact is switched off, its load is lowered by `<contact>.max_force` of `tuning`.

    Args:
        duration: s, from the switch to the full load.
        force: N, the bound of the normal force above `min_force` at the end: about the load that
            the contact will carry, or more.

    Raises:
        ProblemError: a number that is not positive.
    """

    duration: float
    force: float

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(duration=self.duration, force=self.force)


def ramp_names(contact_names: Sequence[str]) -> tuple[str, ...]:
    """Return the name of each entry that z remembers."""
    return tuple(f"unloaded.{name}" for name in contact_names)


def unloaded(memory: ca.SX, on: ca.SX) -> ca.SX:
    """Return r (nc,) of this tick, within 0 and 1, from what z remembers; 1 for what is off."""
    return ca.if_else(on, ca.fmin(ca.fmax(memory, 0), 1), 1)


def next_unloaded(ramp: LoadRamp, share: ca.SX, on: ca.SX, period: float) -> ca.SX:
    """Return r (nc,) behind a tick.

    Args:
        ramp: its duration.
        share: r of the tick.
        on: (nc,) one where a contact is on.
        period: s.
    """
    return ca.if_else(on, ca.fmax(share - period / ramp.duration, 0), 1)


def ramped(ramp: LoadRamp, values: ContactValues, share: ca.SX) -> ContactValues:
    """Return the values of a contact with the bound of its ramp.

    Args:
        ramp: its final force.
        values: of the contact.
        share: r.
    """
    highest = ca.SX(UNBOUNDED) if values.max_force is None else ca.SX(values.max_force)
    rising = values.min_force + (1 - share) * ramp.force
    return replace(values, max_force=ca.if_else(share > 0, ca.fmin(highest, rising), highest))
