"""Soles that do not step on each other in a plan.

References of swinging feet keep off a foot that stands, but a plan that catches a push leaves its
references. With the middles c of the contacts of two soles that are side by side at q0,

    s n_across(q)·(c_i - c_j) ≥ gap,

across the heading of the base, s being the side of the one and the gap that at which their nearest
contacts are `CLEARANCE` of their distance at q0 apart. A sole is a foot of several contacts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import casadi as ca

from mbcasadi.argument_kinds import require_fields
from mbcasadi.contacts.groups import ContactGroup, contact_groups_of
from mbcasadi.description import Contact
from mbcasadi.mpc.legged.ground_axes import to_ground
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import FREE, StagePart, StageTerms
from mbcasadi.mpc.whole_body.foot_clearance import CLEARANCE
from mbcasadi.mpc.whole_body.stance_geometry import StanceGeometry
from mbcasadi.qp.rows import Bounded
from mbcasadi.shapes import require_positive
from mbcasadi.short_text import summarised
from mbcasadi.system import System


@final
@summarised
@dataclass(frozen=True)
class FeetApart(StagePart):
    """Soles side by side that keep off each other, at every sample but the given one, at a price.

    Attributes:
        contacts: those of the system.
        q0: (nq,) pose in which all stand.
        price: ρ₁ of a distance that is missing, 1/m, at a sample.
    """

    contacts: Sequence[Contact]
    q0: Array
    price: float

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(price=self.price)

    def terms(self, stage: Stage) -> StageTerms:
        """Return the rows."""
        q, rows = stage.variables.q, list[Bounded]()
        stance = _Stance(stage.system, self.contacts, self.q0)
        R = stance.base_pose(q)[1]
        left = ca.vertcat(-R[1, 0], R[0, 0]) / ca.norm_2(R[:2, 0])
        for one, other, gap in soles_side_by_side(stance):
            middles = [to_ground(stance.ground, each.frame.pose(q)[0]) for each in (one, other)]
            across = ca.dot(left, (middles[0] - middles[1])[:2])
            names = [self.contacts[each.members[0]].frame for each in (one, other)]
            name = f"distance of {' and '.join(names)}"
            rows.append(Bounded(across, lower=gap, linear_penalty=self.price, name=name))
        at_end = [replace(row, at_end=True) for row in rows]
        return StageTerms(rows=[*rows, *at_end], given=dict.fromkeys(range(len(rows)), FREE))


@dataclass(frozen=True)
class _Stance(StanceGeometry):
    """The pose q0."""

    system: System
    contacts: Sequence[Contact]
    q0: Array


def soles_side_by_side(
    stance: StanceGeometry,
) -> list[tuple[ContactGroup, ContactGroup, float]]:
    """Return two soles each, the left one first, and the least distance of their middles, m."""
    groups = contact_groups_of(stance.system, stance.contacts)
    soles = {group.members: group for group in groups if len(group.members) > 1}
    found = []
    for pair in stance.clearances:
        if pair.side < 0 or not {pair.lands, pair.stands} <= {*soles}:
            continue  # the same two, the other way round
        left, right = (stance.hips[1, [*members]].mean() for members in (pair.lands, pair.stands))
        spared = (1 / CLEARANCE - 1) * pair.gap
        found.append((soles[pair.lands], soles[pair.stands], float(left - right - spared)))
    return found
