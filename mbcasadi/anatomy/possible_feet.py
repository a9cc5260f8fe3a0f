"""Geoms that could be feet: what a robot stands on, if it stands on anything.

They belong to the outermost bodies of a robot whose base can move, may touch the ground by MuJoCo's
rules, are the lowest of their body, and are low in the whole model; where none are, those of
several limbs. Where the model has no ground, as in a file of the robot alone, geoms that may touch
anything may touch it, and all geoms where none of the outermost bodies may touch anything, as in a
file whose scene has pairs for them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mbcasadi.anatomy.feet import lower_points
from mbcasadi.anatomy.links import Links
from mbcasadi.description import Geom, RigidTree
from mbcasadi.system.geom_pairs import is_static, touching_pairs

SAME_HEIGHT = 0.01
"""Share of the model's height within which geoms of one body count as equally low."""

LOW = 0.25
"""Share of the model's height, from the lowest point, in which feet are looked for."""

STEEP = 0.5
"""Vertical part of the axis of a slide along which a base rises."""


@dataclass(frozen=True)
class PossibleFoot:
    """A geom that could be a foot.

    Attributes:
        geom, kind, body: its name, its shape, and the name of its body.
        lowest: height of its lowest point, m.
        friction: sliding coefficient.
    """

    geom: str
    kind: str
    body: str
    lowest: float
    friction: float


def possible_feet(links: Links) -> tuple[PossibleFoot, ...]:
    """Return the geoms that could be feet in the pose of the links, in the model's order."""
    tree = links.tree
    moving = [geom for geom in tree.geoms if not is_static(tree, geom)]
    heights = {geom.name: lowest_point(links, geom) for geom in moving}
    if not heights:
        return ()
    origins = [links.pose(body)[0][2] for body in range(1, len(tree.bodies))]
    ground, size = min(heights.values()), float(np.ptp([*heights.values(), *origins]))
    leaves, touching = list(_outermost(links)), _touches_ground(tree)
    carried = [geom for geom in moving if tree.bodies[geom.body].weld_root in leaves]
    if not touching.intersection(geom.name for geom in carried):
        touching = {geom.name for geom in carried}  # pairs of its scene may let them touch
    lowest: list[Geom] = []
    for leaf in leaves:
        able = [g for g in links.geoms(leaf) if g.name in touching]
        least = min((heights[geom.name] for geom in able), default=np.inf)
        lowest += [g for g in able if heights[g.name] <= least + SAME_HEIGHT * size]
    low = [geom for geom in lowest if heights[geom.name] <= ground + LOW * size]
    if not low and len({tree.bodies[geom.body].weld_root for geom in lowest}) > 1:
        low = lowest  # it starts with its feet above its belly
    order = {geom.name: k for k, geom in enumerate(tree.geoms)}
    return tuple(
        PossibleFoot(
            geom.name,
            geom.kind,
            tree.bodies[geom.body].name,
            heights[geom.name],
            float(geom.friction[0]),
        )
        for geom in sorted(low, key=lambda geom: order[geom.name])
    )


def lowest_point(links: Links, geom: Geom) -> float:
    """Return the height of a geom's lowest point, m; of a mesh without points that of its box."""
    return float(lower_points(links, geom)[:, 2].min())


def _touches_ground(tree: RigidTree) -> set[str]:
    """Return the names of the geoms that may touch what is fixed to the world."""
    if not any(is_static(tree, geom) for geom in tree.geoms):
        return {geom.name for geom in tree.geoms if geom.contype | geom.conaffinity}
    pairs = [(pair.first, pair.second) for pair in touching_pairs(tree)]
    both = [*pairs, *((second, first) for first, second in pairs)]
    return {geom.name for geom, other in both if is_static(tree, other)}


def _outermost(links: Links) -> Iterator[int]:
    """Yield the last links with shapes, of robots whose base can move."""
    shaped = {link for link in links.parents if links.geoms(link)}
    for link in links.parents:
        base = links.chain(link)[0]
        if (
            base != link
            and _can_move(links, base)
            and shaped.intersection(links.subtree(link)) == {link}
        ):
            yield link


def _can_move(links: Links, base: int) -> bool:
    """Return whether a base has a free joint, or slides along two axes at least, one of them up."""
    joints = links.joints(base)
    steep = [abs(links.axis(joint)[2]) for joint in joints if joint.kind == "slide"]
    return any(j.kind == "free" for j in joints) or (len(steep) > 1 and max(steep) > STEEP)
