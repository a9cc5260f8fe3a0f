"""A contact that is switched on takes its load gradually."""

from dataclasses import dataclass, replace
from typing import final

import casadi as ca

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Outcome, Part
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.shapes import require_positive

NAME = "ramp"


@final
@dataclass(frozen=True)
class LoadRamp(Part):
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

    def bind(self, design: Design) -> Bound:
        """Return r of each contact as memory, and the bound that it sets."""

        def forces(now: Instant) -> Instant:
            share = ca.if_else(now.contacts_on, ca.fmin(ca.fmax(now.memory[NAME], 0), 1), 1)
            ramped = [
                replace(each, max_force=self._highest(each.min_force, each.max_force, share[i]))
                for i, each in enumerate(now.contacts)
            ]
            return replace(now, contacts=tuple(ramped)).knowing(NAME, share)

        def remember(tick: Outcome) -> ca.SX:
            share = tick.known["share"]
            less = ca.fmax(share - design.period / self.duration, 0)
            return ca.if_else(tick.valid, ca.if_else(tick.known["on"], less, 1), share)

        return Bound(
            NAME,
            memory=tuple(f"unloaded.{name}" for name in design.contact_names),
            forces=forces,
            carry=lambda now: {"share": now.known[NAME], "on": now.contacts_on},
            remember=remember,
        )

    def _highest(self, least: float | ca.SX, most: float | ca.SX | None, share: ca.SX) -> ca.SX:
        """Return the largest normal force of a contact with the unloaded share r."""
        highest = ca.SX(UNBOUNDED) if most is None else ca.SX(most)
        rising = least + (1 - share) * self.force
        return ca.if_else(share > 0, ca.fmin(highest, rising), highest)
