"""Feet that swing along given places, as a cost of the samples at which a mask has them off."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Contact
from mbcasadi.mpc.legged.ground_axes import common_normal, ground_rotation
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import StagePart, StageTerms
from mbcasadi.mpc.whole_body.contact_mask import contacts_on
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import column, require_numbers, unique
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.frames import require_fixed

AXES = ("x", "y", "z")


@final
@summarised
@readable_fields
@dataclass(frozen=True)
class SwingFeet(StagePart):
    """`½ w |p_ref - p|²` per second of each contact that is off; `feet` in p has the places.

    Attributes:
        contacts: those of the system, from `with_contacts`.
        weight: (3,) along the axes of the ground, its normal last; 1/m².
    """

    contacts: Sequence[Contact]
    weight: ArrayLike

    def __post_init__(self) -> None:
        require_fields(self)
        for i, entry in enumerate(column("weight", self.weight, 3)):
            require_numbers(**{f"weight[{i}]": float(entry)})

    def slots(self, system: System) -> tuple[Slot, ...]:  # noqa: ARG002  # the interface's
        """Return the slice of the places, (3 nc,), m, in world axes."""
        names = unique([contact.frame for contact in self.contacts])
        components = tuple(f"{name}.{axis}" for name in names for axis in AXES)
        return (Slot("feet", components, ("m",) * len(components)),)

    def terms(self, stage: Stage) -> StageTerms:
        """Return the residuals.

        Raises:
            ProblemError: contacts that roll, or that are no rows of the system.
        """
        at, system = stage.variables, stage.system
        names = [f"feet.weight.{axis}" for axis in AXES]
        root = ca.sqrt(stage.tuning.numbers("weights", names, column("weight", self.weight, 3)))
        turn = ca.sparsify(ca.DM(ground_rotation(common_normal(self.contacts)).T))
        off = 1 - contacts_on(system, self.contacts, at.mask)
        running = []
        for i, contact in enumerate(self.contacts):
            frame = system.frame(contact.frame, contact.kind)
            require_fixed(frame)
            error = stage.ref["feet"][3 * i : 3 * i + 3] - ca.SX(frame.pose(at.q)[0])
            running.append(off[i] * (root * (turn @ error)))
        return StageTerms(running=running)
