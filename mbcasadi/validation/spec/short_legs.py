"""Feet of legs with few joints: heel and toe in place of all points of a sole.

A leg of five joints keeps a line of its foot on the ground, not a plane. While both legs are
parallel the rows of all points of two soles still leave the base its motion; once a foot has
turned a little they do not, as one of the rows that depended on the others no longer does.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription
from mbcasadi.system import GeometryContact

Array = NDArray[np.float64]

WHOLE = 6
"""Joints of a leg that lays its foot flat wherever it stands."""

ASIDE = 2.0
"""Worth of a point's distance from the line through the middle, by the way along it."""


def heels_and_toes(
    robot: RobotDescription, contacts: Sequence[GeometryContact], q: Array
) -> tuple[GeometryContact, ...]:
    """Return the contacts, of flat feet on short legs two: the ends of the longest line.

    Args:
        robot: with a floating base; with another one all contacts are kept.
        contacts: of its feet with the ground.
        q: (nq,) pose.
    """
    if robot.base != "floating":
        return tuple(contacts)
    short = [
        leg.foot.geoms
        for leg in robot.limbs_of("leg")
        if leg.foot is not None and leg.foot.shape == "flat" and len(leg.joints) < WHOLE
    ]
    left_out = {name for geoms in short for name in _between(contacts, geoms, q)}
    return tuple(each for each in contacts if each.name not in left_out)


def _between(contacts: Sequence[GeometryContact], geoms: Sequence[str], q: Array) -> Iterator[str]:
    """Yield the names of a foot's contacts between heel and toe, or beside them."""
    own = [each for each in contacts if each.geom2 in geoms]
    if len(own) <= 2:
        return
    points = np.array([np.array(each.gap(q)[1]).ravel()[:2] for each in own])
    points -= points.mean(axis=0)
    along, across = (points @ np.linalg.svd(points, full_matrices=False)[2].T).T
    off = ASIDE * np.abs(across)
    ends = {int(np.argmax(along - off)), int(np.argmin(along + off))}
    yield from (each.name for k, each in enumerate(own) if k not in ends)
