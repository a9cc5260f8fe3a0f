"""Friction cones over a horizon, of contacts that are rows of the system."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.contacts.constraints import contact_force_fun
from mbcasadi.contacts.friction_cone import tuned_pyramid_rows
from mbcasadi.control.tick.tuning import LEAST_FRICTION
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import StagePart, StageTerms
from mbcasadi.qp.rows import Bounded
from mbcasadi.shapes import unique


@final
@dataclass(frozen=True)
class ContactCones(StagePart):
    """Forces of contacts within their cones and limits, of a system from `with_contacts`.

    Forces are the multipliers of the motion. Pyramids are rows as in inverse dynamics;
    quadratic cones are rounded at their apex. A contact that the mask has off has no force.

    Attributes:
        contacts: those of the system.
        linear_penalty, quadratic_penalty: ρ₁, 1/N, and ρ₂, 1/N², of soft rows, as in `Bounded`; of
            an interval with the nominal length of the first, where lengths are given, and of others
            in proportion. Hard ones by default. A measured foot that lands with speed may have no
            force inside its cone that stops it within a step: then hard rows have no solution.
    """

    contacts: Sequence[Contact]
    linear_penalty: float = 0.0
    quadratic_penalty: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)

    def terms(self, stage: Stage) -> StageTerms:
        """Return the rows.

        Raises:
            ProblemError: a system without rows of these contacts.
        """
        system, at = stage.system, stage.variables
        if len(system.parameters):
            raise ProblemError(f"'{system.name}' has parameters; expected a system at numbers")
        forces = contact_force_fun(system, self.contacts)(at.q, at.lam)
        names = unique([contact.frame for contact in self.contacts])
        rows = []
        first = system.nc - len(system.row_owners)
        for i, (name, contact) in enumerate(zip(names, self.contacts, strict=True)):
            own = next(k for k, owners in enumerate(system.row_owners) if name in owners)
            on = ca.SX(1) if system.mask is None else at.mask[first + own]
            mu = stage.tuning.numbers(
                "friction", [f"{name}.friction"], np.array([contact.friction]), "", LEAST_FRICTION
            )
            rows += _rows(name, contact, forces[3 * i : 3 * i + 3], (on, mu))
        linear, square = self.linear_penalty, self.quadratic_penalty
        if stage.motion.given:  # a price counts by the length of the interval
            share = stage.length if linear else ca.sqrt(stage.length)
            rows = [scaled for row in rows for scaled in _times(share, row)]
        soft = [replace(row, linear_penalty=linear, quadratic_penalty=square) for row in rows]
        return StageTerms(rows=soft)


def _rows(
    name: str, contact: Contact, force: ca.SX, at: tuple[ca.SX, ca.SX | ca.DM]
) -> list[Bounded]:
    """Return the rows of one contact's force (n, t1, t2), which is zero where it is off.

    `at` has whether it is on, and its friction.
    """
    (on, mu), pull, own = at, contact.adhesion, contact.friction
    if contact.cone == "quadratic":
        across = ca.sqrt(ca.sumsqr(force[1:]) + (own * ROUNDED) ** 2)
        rows = [Bounded(mu * (force[0] + pull) - across, -own * ROUNDED, name=f"cone of {name}")]
    else:
        faces = tuned_pyramid_rows(ca.SX(mu), contact.sides, outer=contact.cone == "outer")
        rows = [Bounded(faces @ (force + ca.DM([pull, 0, 0])), upper=0.0, name=f"cone of {name}")]
    highest = np.inf if contact.max_force is None else contact.max_force
    if contact.min_force > 0 or contact.max_force is not None:
        above, least = force[0] - on * contact.min_force, 0.0 if contact.min_force else -np.inf
        rows.append(Bounded(above, least, highest - contact.min_force, name=f"force of {name}"))
    return rows


def _times(factor: ca.SX | float, row: Bounded) -> list[Bounded]:
    """Return a row times a factor: one for each of its bounds, which become zero."""
    value = ca.SX(row.value)
    low, high = (float(np.asarray(bound)) for bound in (row.lower, row.upper))
    rows = [Bounded(factor * (value - low), 0.0, name=row.name)] if np.isfinite(low) else []
    if np.isfinite(high):
        rows.append(Bounded(factor * (value - high), upper=0.0, name=row.name))
    return rows


ROUNDED = 1e-3
"""N, distance of a rounded apex from that of its cone."""
