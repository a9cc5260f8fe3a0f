"""The frame at the end of a limb."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy.links import Links
from mbcasadi.anatomy.robot import RobotTool, ToolKind
from mbcasadi.description import Joint

Array = NDArray[np.float64]


DIRECTIONS = 3
"""Joints that have to move a point so that it can go anywhere."""

ON_AXIS = 0.05
"""Distance from a joint's axis within which it hardly moves a point, of the limb's length."""


def tool_of(links: Links, limb: Sequence[int], length: float) -> RobotTool:
    """Return the site of a limb's last link that is farthest from its last joint, else the body.

    Sites and bodies that lie on the axes of so many joints that the others hardly move them in all
    directions come last: before them is the middle of the farthest shape that can be moved.

    Args:
        links: of the model.
        limb: its links, outwards.
        length: of the limb, m.
    """
    tip, origin = limb[-1], np.zeros(3)
    joints = links.joints(tip)
    start = links.anchor(joints[-1]) if joints else links.place(tip, origin)
    places: dict[ToolKind, dict[str, Array]] = {
        "site": {each.name: links.place(each.body, each.pos) for each in links.sites(tip)},
        "body": {links.tree.bodies[k].name: links.place(k, origin) for k in links.members(tip)},
        "geom": {each.name: links.place(each.body, each.pos) for each in links.geoms(tip)},
    }
    moving = [joint for link in limb for joint in links.joints(link)]

    def can_go_anywhere(place: Array) -> bool:
        moved = [_moves(links, joint, place, ON_AXIS * length) for joint in moving]
        return sum(moved) >= min(DIRECTIONS, len(moving))

    frames = [(name, kind) for kind in places for name in _by_distance(places[kind], start)]
    usual = [each for each in frames if each[1] != "geom"]
    able = [each for each in frames if can_go_anywhere(places[each[1]][each[0]])]
    best = (able or usual)[0]
    return RobotTool(*best, tuple(each for each in usual if each != best))


def _moves(links: Links, joint: Joint, place: Array, near: float) -> bool:
    """Return whether a joint moves a place (3,): a hinge or a ball from afar, a slide always."""
    arm = place - links.anchor(joint)
    if joint.kind == "hinge":
        arm = np.cross(links.axis(joint), arm)
    return joint.kind not in {"hinge", "ball"} or float(np.linalg.norm(arm)) > near


def _by_distance(places: Mapping[str, Array], start: Array) -> list[str]:
    """Return names, those of the farthest places first."""
    return sorted(places, key=lambda name: -float(np.linalg.norm(places[name] - start)))
