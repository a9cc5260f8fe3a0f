"""Geoms that could be feet: what a robot stands on, if it stands on anything.

They belong to the outermost bodies of a robot whose base can move, may touch the ground by MuJoCo's
rules, are the lowest of their body, and are low in the whole model where some are, all in the pose
of its first key frame. Where the model has no ground, as in a file of the robot alone, geoms that
may touch anything may touch it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Geom, RigidTree
from mbcasadi.system.geom_pairs import is_static, touching_pairs
from mbcasadi.system.geometry_contacts import placed

Array = NDArray[np.float64]

SAME_HEIGHT = 0.01
"""Share of the model's height within which geoms of one body count as equally low."""

LOW = 0.25
"""Share of the model's height, from the lowest point, in which feet are looked for."""


@dataclass(frozen=True)
class PossibleFoot:
    """A geom that could be a foot.

    Attributes:
        geom, kind, body: its name, its shape, and the name of its body.
        lowest: height of its lowest point, m, in the pose of the first key frame.
        friction: sliding coefficient.
    """

    geom: str
    kind: str
    body: str
    lowest: float
    friction: float


def possible_feet(tree: RigidTree) -> tuple[PossibleFoot, ...]:
    """Return the geoms that could be feet, in the model's order."""
    pose = np.ravel(next(iter(tree.keyframes.values()), tree.q0))
    moving = [geom for geom in tree.geoms if not is_static(tree, geom)]
    touching = _touches_ground(tree)
    heights = {geom.name: lowest_point(tree, geom, pose) for geom in moving}
    if not heights:
        return ()
    ground, size = min(heights.values()), float(np.ptp([*heights.values()]))
    lowest: list[Geom] = []
    for leaf in _outermost(tree):
        of_leaf = [g for g in moving if tree.bodies[g.body].weld_root == leaf]
        able = [geom for geom in of_leaf if geom.name in touching]
        least = min((heights[geom.name] for geom in able), default=np.inf)
        lowest += [g for g in able if heights[g.name] <= least + SAME_HEIGHT * size]
    low = [geom for geom in lowest if heights[geom.name] <= ground + LOW * size]
    order = {geom.name: k for k, geom in enumerate(tree.geoms)}
    return tuple(
        PossibleFoot(
            geom.name,
            geom.kind,
            tree.bodies[geom.body].name,
            heights[geom.name],
            float(geom.friction[0]),
        )
        for geom in sorted(low or lowest, key=lambda geom: order[geom.name])
    )


def lowest_point(tree: RigidTree, geom: Geom, q: Array) -> float:
    """Return the height of a geom's lowest point, m; of a mesh without points that of its box."""
    place = placed(tree, geom, ca.SX(ca.DM(q)))
    R, p = (np.array(ca.evalf(ca.SX(value))) for value in (place.R, place.p))
    down, size = np.abs(R[2]), geom.size
    if len(geom.points):
        return float(p.ravel()[2] + np.min(geom.points @ R[2]))
    below = {
        "sphere": size[0],
        "capsule": size[0] + size[1] * down[2],
        "cylinder": size[0] * np.hypot(down[0], down[1]) + size[1] * down[2],
        "ellipsoid": float(np.linalg.norm(down * size)),
    }
    return float(p.ravel()[2] - below.get(geom.kind, float(down @ size)))


def _touches_ground(tree: RigidTree) -> set[str]:
    """Return the names of the geoms that may touch what is fixed to the world."""
    if not any(is_static(tree, geom) for geom in tree.geoms):
        return {geom.name for geom in tree.geoms if geom.contype | geom.conaffinity}
    pairs = [(pair.first, pair.second) for pair in touching_pairs(tree)]
    both = [*pairs, *((second, first) for first, second in pairs)]
    return {geom.name for geom, other in both if is_static(tree, other)}


def _outermost(tree: RigidTree) -> Iterator[int]:
    """Yield the bodies that carry no other one by a joint, of robots whose base can move."""
    roots = dict.fromkeys(body.weld_root for body in tree.bodies if body.weld_root)
    above = {root: tree.bodies[tree.bodies[root].parent].weld_root for root in roots}
    for root in roots:
        base = root
        while above[base]:
            base = above[base]
        if root not in above.values() and base != root and _can_move(tree, base):
            yield root


def _can_move(tree: RigidTree, base: int) -> bool:
    """Return whether a base has a free joint, or slides along two axes at least."""
    kinds = [tree.joints[joint].kind for joint in tree.bodies[base].joints]
    return "free" in kinds or kinds.count("slide") > 1
