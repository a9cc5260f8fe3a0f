"""Contacts that land: on the ground and at rest at the sample at which a mask closes them.

Where the mask has a contact off in the interval before sample k and on in the one behind it,

    phi_i(q_k) = ground_i,    (A v)_i = 0        for the rows i of the contact,

so that closing it is no impact. Without a price of speeds contacts may land with any: the interval
that closes them is an inelastic impact, `A v⁺ = 0` with `M (v⁺ - v) = h (f - h_b) + Aᵀ Λ`, whose
impulse `Λ = h lam` is in the cones of the interval, and differentiated with it. Rows are soft at a
linear price: above its multiplier a price leaves a landing exact, and one that cannot be reached
becomes a slack. `landing` in p says which contacts land at a sample: those that follow from the
mask, unless they are given. At the first sample behind the given state only speeds count: a foot at
rest there is where it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.contacts.constraints import ROW_AXES
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Contact
from mbcasadi.dynamics.row_derivatives import point_rates
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.contact_schedule import positions
from mbcasadi.mpc.ocp.problem import LANDING
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import StagePart, StageTerms
from mbcasadi.qp.rows import Bounded
from mbcasadi.shapes import require_positive, unique
from mbcasadi.short_text import summarised
from mbcasadi.system import System, evaluate


@final
@summarised
@dataclass(frozen=True)
class ContactLanding(StagePart):
    """Rows of the samples at which contacts land, of a system from `with_contacts` with a mask.

    `ground` in p is the height of the ground under each contact over the plane of the contact, m.
    A step that takes back distances of rows (`SemiImplicitStep(decay=)`) takes them to that plane:
    for ground of other heights the decay of these rows is zero. In place of a `ContactSchedule`,
    unless one is given too.

    Attributes:
        contacts: those of the system.
        height_price: ρ₁ of a distance from the ground, 1/m, at a sample.
        speed_price: ρ₁ of a speed, s/m; None for landings with an impact.
    """

    contacts: Sequence[Contact]
    height_price: float
    speed_price: float | None

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(height_price=self.height_price)
        if self.speed_price is not None:
            require_positive(speed_price=self.speed_price)

    def slots(self, system: System) -> tuple[Slot, ...]:  # noqa: ARG002  # the interface's
        """Return the slices of heights, (contacts,), and of contacts that land, (2 contacts,)."""
        names = tuple(unique([contact.frame for contact in self.contacts]))
        lands = tuple(f"{name}.{kind}" for kind in ("speed", "height") for name in names)
        return Slot("ground", names, ("m",) * len(names)), Slot(LANDING, lands, ("",) * len(lands))

    def terms(self, stage: Stage) -> StageTerms:
        """Return the rows.

        Raises:
            ProblemError: a system without a mask, or without rows of these contacts.
        """
        system, at = stage.system, stage.variables
        names, all_rows = unique([c.frame for c in self.contacts]), list(system.constraint_names)
        axes = [[f"{name}.{axis}" for axis in ROW_AXES] for name in names]
        own = [[all_rows.index(row) for row in known if row in all_rows] for known in axes]
        first = len(all_rows) - len(system.row_owners)
        owned = [[k for k, of_row in enumerate(system.row_owners) if n in of_row] for n in names]
        missing = next((n for n, k in zip(names, owned, strict=True) if not k), None)
        if system.mask is None or missing is not None:
            raise ProblemError(
                f"'{system.name}' has no switched rows of contact '{missing or names[0]}'; "
                "expected with_contacts(system, contacts).with_mask()"
            )
        inputs = {"q": at.carried_q, "v": at.v} | ({"t": at.t} if at.t.numel() else {})
        phi, psi = positions(stage), ca.SX(evaluate(stage.members.loop_rate, inputs))
        ground, lands = stage.ref["ground"], stage.ref[LANDING]
        rows, slopes = list[Bounded](), dict[int, ca.SX]()
        for i, name in enumerate(names):
            height = [k for k in own[i] if all_rows[k] == axes[i][0]]
            above = phi[height] - ground[i]
            speed = ("speed", own[i], lands[i], psi[own[i]], self.speed_price)
            place = ("height", height, lands[len(names) + i], above, self.height_price)
            for kind, places, gate, value, price in (speed, place):
                if not places or price is None:  # its body's other contacts hold it
                    continue
                by = point_rates(stage.members, at.q, at.v, places)
                if by is not None:
                    along = by if kind == "speed" else (by[1], ca.SX(*by[1].shape))
                    slopes[len(rows)] = gate * ca.horzcat(*along)
                label = f"landing {kind} of {name}"
                rows.append(Bounded(gate * value, 0.0, 0.0, linear_penalty=price, name=label))
        return StageTerms(
            rows=rows,
            slopes=slopes,
            usual={LANDING: np.ones(lands.numel())},
            landing_rows=tuple(first + rows_of[0] for rows_of in owned),
        )
