"""The frame at the end of a limb."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy.links import Links
from mbcasadi.anatomy.robot import RobotTool

Array = NDArray[np.float64]


def tool_of(links: Links, tip: int) -> RobotTool:
    """Return the site of a link that is farthest from its last joint, else the farthest body.

    Args:
        links: of the model.
        tip: the outermost link of a limb.
    """
    origin = np.zeros(3)
    joints = links.joints(tip)
    start = links.anchor(joints[-1]) if joints else links.place(tip, origin)
    sites = {each.name: links.place(each.body, each.pos) for each in links.sites(tip)}
    bodies = {links.tree.bodies[k].name: links.place(k, origin) for k in links.members(tip)}
    outwards = [*_by_distance(sites, start), *_by_distance(bodies, start)]
    kinds = ["site"] * len(sites) + ["body"] * len(bodies)
    return RobotTool(
        outwards[0],
        "site" if sites else "body",
        tuple(zip(outwards[1:], kinds[1:], strict=True)),
    )


def _by_distance(places: Mapping[str, Array], start: Array) -> list[str]:
    """Return names, those of the farthest places first."""
    return sorted(places, key=lambda name: -float(np.linalg.norm(places[name] - start)))
