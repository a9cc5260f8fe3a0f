"""Limbs: what hangs on a base by joints, from the link that branches to the outermost one.

A chain of links ends where several links hang on one. Where these are short beside the chain they
are the fingers of its hand; else the chain is a spine, and they are limbs of their own. Where one
of them stands on the ground, the others are its linkage. Parts that no actuator moves, beside one
that is moved, belong to linkages and are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy.links import Links
from mbcasadi.description import Joint
from mbcasadi.description.constraints import Connect, Equality, Weld

Array = NDArray[np.float64]

SHORT = 0.5
"""Length of fingers, of that of the chain that carries them, at most."""

RADIUS = 0.9
"""Share of the largest radius from which on points count as the rim of a wheel."""

GAP = np.deg2rad(61.0)
"""Largest angle between points of a rim: that of a hexagon."""

GEAR = 1e-3
"""Share of the model's height below which a link without shapes is a gear or a coupling."""

BESIDE_CHAINS = 1 << 20
"""Numbers of parts that belong to no limb begin here."""

LOW = 0.02
"""Share of the model's size within which a wheel reaches as low as the model."""


@dataclass(frozen=True, eq=False)
class Chain:
    """Links in a row.

    Attributes:
        links: from the first one to the outermost one.
        mount: the link that carries the first one.
        spine: links between the base and the mount.
        fingers: chains that the outermost link carries.
        wheel: whether it is one link that rolls.
    """

    links: tuple[int, ...]
    mount: int
    spine: tuple[int, ...] = ()
    fingers: tuple["Chain", ...] = ()
    wheel: bool = False

    @property
    def tip(self) -> int:
        """The outermost link, before the fingers."""
        return self.links[-1]


@dataclass(frozen=True, eq=False)
class LimbSearch:
    """The chains of a model.

    Attributes:
        links: of the model, in the pose in which lengths are measured.
        moved: names of joints that actuators move, directly or through constraints.
        ranges: (lowest, highest) of the joints that have them, by name.
        stand: links that stand on the ground.
    """

    links: Links
    moved: frozenset[str]
    ranges: Mapping[str, tuple[float, float]]
    stand: frozenset[int]

    def chains(self, base: int) -> Iterator[Chain]:
        """Yield the chains that hang on a link, or on spines of it; wheels too."""
        yield from self._chains(base, ())

    def _chains(self, hub: int, spine: tuple[int, ...]) -> Iterator[Chain]:
        for child in self._essential(self.links.children[hub]):
            if self._rolls(child):
                yield Chain((child,), hub, spine, wheel=True)
                continue
            chain = self._until_branch(child)
            carried = list(self._chains(chain[-1], (*spine, *chain)))
            standing = [each for each in carried if self.stand.intersection(each.links)]
            if len(standing) == 1 and standing[0].mount == chain[-1]:
                yield replace(
                    standing[0], links=(*chain, *standing[0].links), mount=hub, spine=spine
                )
            elif not carried or self._is_hand(chain, carried):
                yield Chain(tuple(chain), hub, spine, tuple(carried))
            else:
                yield from carried

    def _essential(self, children: Sequence[int]) -> list[int]:
        """Return links without gears, and without what is moved by nothing, if some are left."""
        moved = [k for k in children if self.is_moved(k)] or list(children)
        return [k for k in moved if not self._is_gear(k)] or moved

    def _is_gear(self, link: int) -> bool:
        """Return whether a link carries nothing and has no extent about its joints."""
        if self.links.children[link]:
            return False
        return self.length([link]) < GEAR * self.links.heights[1]

    def is_moved(self, link: int) -> bool:
        """Return whether actuators move a link, or something that it carries."""
        each = self.links
        return any(j.name in self.moved for k in each.subtree(link) for j in each.joints(k))

    def _until_branch(self, link: int) -> list[int]:
        """Return a link and those behind it, up to one that carries none or several."""
        chain = [link]
        while len(carried := self._essential(self.links.children[chain[-1]])) == 1:
            if self._rolls(carried[0]):
                break
            chain.append(carried[0])
        return chain

    def _is_hand(self, chain: Sequence[int], carried: Sequence[Chain]) -> bool:
        """Return whether what a chain carries are fingers."""
        if any(each.wheel or each.mount != chain[-1] for each in carried):
            return False
        longest = max(self.length(each.links) for each in carried)
        return longest <= SHORT * self.length(chain)

    def length(self, chain: Sequence[int]) -> float:
        """Return the way along the joints of a chain to its farthest point, m, slides run out."""
        joints = [joint for link in chain for joint in self.links.joints(link)]
        joints = [joint for joint in joints if joint.kind != "free"]
        anchors = [self.links.anchor(joint) for joint in joints if joint.kind != "slide"]
        anchors = anchors or [self.links.place(chain[0], np.zeros(3))]
        way = float(sum(np.linalg.norm(np.diff(anchors, axis=0), axis=1)))
        out = self._own_surface(chain[-1]) - anchors[-1]
        runs = [np.ptp(self.ranges.get(j.name, (0.0, 0.0))) for j in joints if j.kind == "slide"]
        return way + float(np.linalg.norm(out, axis=1).max(initial=0.0)) + float(sum(runs))

    def _own_surface(self, link: int) -> Array:
        """Return points (k, 3) of a link alone, m."""
        shapes = [self.links.points(geom) for geom in self.links.geoms(link)]
        bodies = [self.links.place(k, np.zeros((1, 3))) for k in self.links.members(link)]
        return np.vstack(shapes + bodies)

    def _rolls(self, link: int) -> bool:
        """Return whether a link is a wheel: round about a level hinge without end, and low."""
        hinge = self._endless(self.links.joints(link))
        if hinge is None:
            return False
        axis = self.links.axis(hinge)
        points = self.links.surface(link) - self.links.anchor(hinge)
        across = points - np.outer(points @ axis, axis)
        radius = np.linalg.norm(across, axis=1)
        lowest, size = self.links.heights
        bottom = self.links.anchor(hinge)[2] - radius.max()
        if abs(axis[2]) > 0.5 or bottom > lowest + LOW * size:
            return False
        first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
        rim = across[radius > RADIUS * radius.max()]
        angles = np.sort(np.arctan2(rim @ np.cross(axis, first), rim @ first))
        gaps = np.diff(np.append(angles, angles[0] + 2 * np.pi))
        return bool(gaps.max(initial=0.0) < GAP) and len(angles) > 1

    def _endless(self, joints: Sequence[Joint]) -> Joint | None:
        """Return the hinge without a range that is a link's only joint, if it is one."""
        if len(joints) != 1 or joints[0].kind != "hinge" or joints[0].name in self.ranges:
            return None
        return joints[0]


def joined_groups(
    links: Links, base: int, chains: Sequence[Chain], equalities: Sequence[Equality]
) -> list[set[int]]:
    """Return the numbers of the chains that loops join, perhaps by way of linkages; -1 is the base.

    Args:
        links: of the model.
        base: the link on which the chains hang.
        chains: of the base.
        equalities: of the model; those of positions and rotations close loops.
    """
    place = dict.fromkeys((0, base), -1)
    for k, chain in enumerate(chains):
        place |= dict.fromkeys(links.subtree(chain.links[0]), k)
    for link in links.parents:
        place.setdefault(link, BESIDE_CHAINS + _hung_at(links, base, link))
    groups = [{k} for k in range(len(chains))]
    for equality in equalities:
        if isinstance(equality, Connect | Weld):
            ends = (equality.body1, equality.body2)
            joined = {place[links.tree.bodies[body].weld_root] for body in ends}
            touched = [group for group in groups if group & joined]
            groups = [group for group in groups if not group & joined]
            groups.append(joined.union(*touched))
    return [group for group in groups if group & {*range(len(chains))}]


def _hung_at(links: Links, base: int, link: int) -> int:
    """Return the first link between the base and a link."""
    chain = links.chain(link)
    return chain[chain.index(base) + 1] if base in chain[:-1] else chain[0]
