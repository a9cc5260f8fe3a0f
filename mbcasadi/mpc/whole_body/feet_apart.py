"""Feet that do not step on each other in a plan.

References of swinging feet keep off a foot that stands, but a plan that catches a push leaves its
references. For two feet side by side, the left one l and the right one r,

    n(q)·(p_i - p_j) ≥ gap,    i in l, j in r,

with n to the left across the heading of the base, for the contacts at the ends of their inner
sides, and with a share of the gap that footholds keep. Rows are soft at a linear price.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.contacts.groups import contact_groups_of
from mbcasadi.description import Contact
from mbcasadi.mpc.legged.from_system import trunk_joint
from mbcasadi.mpc.legged.ground_axes import to_ground
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import FREE, StagePart, StageTerms
from mbcasadi.mpc.whole_body.stance_geometry import StanceGeometry
from mbcasadi.qp.rows import Bounded
from mbcasadi.shapes import require_positive
from mbcasadi.short_text import summarised
from mbcasadi.system import System

KEPT = 0.7
"""Share of the gap of footholds: with all of it T1 fell, pushed from a side by what it measures."""

ROUNDING = 1e-6
"""m, by which contacts on a line may be off it."""


@final
@summarised
@dataclass(frozen=True)
class FeetApart(StagePart):
    """Feet side by side keep off each other, at every sample but the given one, at a price.

    They are the feet of a robot on two, and soles: feet of several contacts. The points of a robot
    with more feet are left to their references.

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
        system, q = stage.system, stage.variables.q
        stance = _Stance(system, self.contacts, self.q0)
        R = stance.base_pose(q)[1]
        level = ca.norm_2(R[:2, 0])
        ahead, base = R[:2, 0] / level, trunk_joint(system).dof
        left = ca.vertcat(-ahead[1], ahead[0])
        turn = ca.horzcat(-ca.dot(left, R[:2, 2]), ca.dot(left, R[:2, 1])) / level
        rows, slopes = list[Bounded](), dict[int, ca.SX]()
        for i, j, gap in inner_pairs(stance):
            names = [self.contacts[k].frame for k in (i, j)]
            one, other = (
                system.frame(self.contacts[k].frame, self.contacts[k].kind) for k in (i, j)
            )
            way, moves = (
                to_ground(stance.ground, ca.SX(a) - ca.SX(b))[:2, :]
                for a, b in (
                    (one.pose(q)[0], other.pose(q)[0]),
                    (one.jacobian(q)[:3, :], other.jacobian(q)[:3, :]),
                )
            )
            slope = ca.horzcat(left.T @ moves, ca.SX(1, system.nv))
            slope[base + 4 : base + 6] -= ca.dot(ahead, way) * turn
            slopes[len(rows)] = slope
            name = f"distance of {' and '.join(names)}"
            row = Bounded(ca.dot(left, way), lower=KEPT * gap, linear_penalty=self.price, name=name)
            rows.append(row)
        at_end = [replace(row, at_end=True) for row in rows]
        given = dict.fromkeys(range(len(rows)), FREE)
        return StageTerms(rows=[*rows, *at_end], given=given, slopes=slopes)


@dataclass(frozen=True)
class _Stance(StanceGeometry):
    """The pose q0."""

    system: System
    contacts: Sequence[Contact]
    q0: Array


def inner_pairs(stance: StanceGeometry) -> list[tuple[int, int, float]]:
    """Return contacts of feet side by side, the left one first, and their least distance, m."""
    groups = contact_groups_of(stance.system, stance.contacts)
    soles = [group.members for group in groups if len(group.members) > 1 or len(groups) == 2]
    found = []
    for pair in stance.clearances:
        if pair.side < 0 or not {pair.lands, pair.stands} <= {*soles}:
            continue  # the same two, the other way round, or points
        inner = (_inner_ends(stance.hips, members, side) for members, side in (
            (pair.lands, 1), (pair.stands, -1)
        ))  # fmt: skip
        found += [(i, j, pair.gap) for i, j in product(*inner)]
    return found


def _inner_ends(hips: Array, members: Sequence[int], side: int) -> list[int]:
    """Return the foremost and the hindmost contact of the inner half of a foot."""
    ahead, across = hips[:, [*members]]
    outwards = side * across
    middle = (outwards.min() + outwards.max()) / 2
    inner = np.flatnonzero(outwards <= middle + ROUNDING)
    ends = {int(inner[pick(ahead[inner])]) for pick in (np.argmin, np.argmax)}
    return sorted(members[k] for k in ends)
