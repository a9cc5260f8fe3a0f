"""Footholds of feet side by side that do not cross.

A foot that lands keeps, across the heading of the base, `CLEARANCE` of the gap that it has at q0
to a foot that stands beside it: a push, or a turn, takes it no nearer. Feet are beside each other
that are further apart across than along at q0.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

CLEARANCE = 0.5
"""Share of the gap at q0 that feet keep from each other where they land."""


class FootClearance(NamedTuple):
    """Two feet side by side.

    Attributes:
        lands, stands: contacts of the two.
        side: 1 where the one that lands is to the left, else -1.
        gap: least distance across between their contacts where one lands, m.
    """

    lands: tuple[int, ...]
    stands: tuple[int, ...]
    side: int
    gap: float

    def outwards(self, targets: Sequence[ca.SX], places: ca.SX, left: ca.SX) -> ca.SX:
        """Return by how far the foot has to land further from the other one, m.

        Args:
            targets: of each contact, (3,) each, m.
            places: (3, nc) of the contacts now, m.
            left: (2,) direction to the left of the base.
        """
        inner = [self.side * ca.dot(left, targets[i][:2]) for i in self.lands]
        other = [self.side * ca.dot(left, places[:2, i]) for i in self.stands]
        return ca.fmax(0, self.gap - (ca.mmin(ca.vertcat(*inner)) - ca.mmax(ca.vertcat(*other))))


def foot_clearances(
    hips: NDArray[np.float64], feet: Sequence[tuple[int, ...]]
) -> list[FootClearance]:
    """Return the feet that stand side by side at q0, each as the one that lands.

    Args:
        hips: (2, nc) places of the contacts at q0 in axes of the base, m.
        feet: the contacts of each foot.
    """
    found = []
    for one in feet:
        for other in feet:
            (ahead, across), (others_ahead, others_across) = hips[:, [*one]], hips[:, [*other]]
            way = abs(ahead.mean() - others_ahead.mean())
            for side in (1, -1):
                gap = (side * across).min() - (side * others_across).max()
                if gap > way:
                    found.append(FootClearance(one, other, side, CLEARANCE * float(gap)))
    return found


def apart(
    clearances: Sequence[FootClearance],
    targets: Sequence[ca.SX],
    places: ca.SX,
    on: ca.SX,
    yaw: ca.SX,
) -> list[ca.SX]:
    """Return where contacts land, (3,) each, off the feet that stand.

    Args:
        clearances: from `foot_clearances`.
        targets: where they would land.
        places: (3, nc) of the contacts now, m.
        on: (nc,) which stand.
        yaw: heading of the base, rad.
    """
    left, moved = ca.vertcat(-ca.sin(yaw), ca.cos(yaw)), [*targets]
    for pair in clearances:
        way = on[pair.stands[0]] * pair.side * pair.outwards(targets, places, left)
        for i in pair.lands:
            moved[i] = ca.vertcat(moved[i][:2] + way * left, moved[i][2])
    return moved
