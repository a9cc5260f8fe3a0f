"""What a robot is, from its model alone: no name of it counts, nor its units or its frames."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.anatomy.feet import foot_of
from mbcasadi.anatomy.limbs import SHORT, Chain, LimbSearch, joined_groups
from mbcasadi.anatomy.links import Links
from mbcasadi.anatomy.possible_feet import possible_feet
from mbcasadi.anatomy.robot import (
    BaseKind,
    LimbRole,
    RobotDescription,
    RobotKind,
    RobotLimb,
    Side,
)
from mbcasadi.anatomy.tools import tool_of
from mbcasadi.argument_kinds import checked
from mbcasadi.description import Geom
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.system import System
from mbcasadi.system.joint_roles import JointRoles
from mbcasadi.system.ranges import position_ranges

Array = NDArray[np.float64]

ARM = 4
"""Joints that actuators move, of a limb that reaches places."""

BESIDE = 0.02
"""Distance from the plane of symmetry from which on a limb has a side, of the model's size."""

LEVEL_AXIS = 0.5
"""Vertical part of an axis up to which it counts as level."""


@checked
def describe(
    system: System, q: ArrayLike | None = None, *, ahead: ArrayLike | None = None
) -> RobotDescription:
    """Return what a robot is: its kind, limbs, feet, tools, sides, and what drives its joints.

    It is read from structure, joints, shapes and actuators; names do not count, nor does the order
    of bodies, the unit of length, or the frame of the base.

    Args:
        system: read from a model.
        q: (nq,) pose in which it stands; by default the first key frame, else the authored one,
            joints inside their ranges.
        ahead: (3,) direction in which it looks, in the axes of its base; by default what its feet
            and limbs say, else x of the world.

    Raises:
        ProblemError: a system that is given by equations; `ahead` of a robot whose base is fixed,
            or one that is vertical.
        ShapeError: q or ahead has another size.
    """
    tree = system.tree
    if tree is None:
        raise ProblemError(
            f"'{system.name}' is given by equations; expected a system of `mb.read_mjcf`"
        )
    keyframe = next(iter(tree.keyframes), None) if q is None else None
    known = tree.q0 if keyframe is None else tree.keyframes[keyframe]
    default = np.clip(known, *position_ranges(system))
    pose = column("q", default if q is None else q, system.nq)
    way = None if ahead is None else column("ahead", ahead, 3)
    return _Reading(system, Links(tree, pose), way).description(keyframe)


@dataclass(frozen=True, eq=False)
class _Reading:
    """The steps from a model to its description."""

    system: System
    links: Links
    own_ahead: Array | None

    @cached_property
    def roles(self) -> JointRoles:
        return self.system.joint_roles

    @cached_property
    def moved(self) -> frozenset[str]:
        """Joints that actuators move; of a model without actuators all but those of bases."""
        named = frozenset(self.roles.driven + self.roles.dependent)
        joints = self.links.tree.joints
        return named or frozenset(joint.name for joint in joints if joint.kind != "free")

    @cached_property
    def search(self) -> LimbSearch:
        limits = self.system.limits
        ends = zip(limits.joint_names, limits.joint, strict=True)
        ranges = {name: (float(a), float(b)) for name, (a, b) in ends if np.isfinite(b - a)}
        return LimbSearch(self.links, self.moved, ranges, frozenset(self.feet))

    @cached_property
    def roots(self) -> list[int]:
        """The links on the world that belong to the robot."""
        carried = self.links.children[0]
        moved = [root for root in carried if self.search.is_moved(root)]
        thrust = [root for root in carried if self._floats(root)]
        return moved or thrust[:1]

    def _floats(self, root: int) -> bool:
        return any(joint.kind == "free" for joint in self.links.joints(root))

    @cached_property
    def base(self) -> tuple[BaseKind, int]:
        """How the base moves, and its link; 0 where it is fixed."""
        if len(self.roots) == 1:
            (root,) = self.roots
            kinds = [joint.kind for joint in self.links.joints(root)]
            if "free" in kinds:
                return "floating", root
            if sorted(kinds) == ["hinge", "slide", "slide"]:
                return "planar", root
        return "fixed", 0

    @property
    def height(self) -> float:
        """Of the model in this pose, m."""
        return self.links.heights[1]

    @cached_property
    def chains(self) -> list[Chain]:
        return list(self.search.chains(self.base[1])) if self.roots else []

    @cached_property
    def groups(self) -> list[set[int]]:
        """Numbers of the chains that loops join; -1 is the base."""
        return joined_groups(self.links, self.base[1], self.chains, self.system.equalities)

    def description(self, keyframe: str | None) -> RobotDescription:
        """Return the whole of it."""
        base, link = self.base
        ahead, left = self.axes
        limbs = tuple(self._limb(chain) for chain in self.chains)
        kind, notes = self._kind(limbs)
        notes += self._looks_back()
        objects = [k for k in self.links.children[0] if k not in self.roots and self._floats(k)]
        return RobotDescription(
            name=self.system.name,
            kind=kind,
            base=base,
            base_body=self.links.name(link) if link else "",
            limbs=limbs,
            joints=self.roles,
            ahead=ahead,
            left=left,
            objects=tuple(map(self.links.name, objects)),
            keyframe=keyframe,
            notes=tuple(notes),
        )

    @cached_property
    def feet(self) -> dict[int, list[str]]:
        """Names of the geoms that could be feet, by the link that carries them."""
        tree = self.links.tree
        geoms = {geom.name: geom for geom in tree.geoms}
        found: dict[int, list[str]] = {}
        for foot in possible_feet(self.links):
            link = tree.bodies[geoms[foot.geom].body].weld_root
            found.setdefault(link, []).append(foot.geom)
        return found

    @cached_property
    def axes(self) -> tuple[Array, Array]:
        """(2,) ahead and (2,) left: legs swing about left, or arms are to the left and right.

        Of both ways to look, the one in which soles, else limbs without feet, reach farther, else
        the one along x of the world.
        """
        if self.own_ahead is not None:
            return self._as_given(self.own_ahead)
        if self.pair:
            return self._between(*self.pair)
        legs = [c for c in self.chains if self._stands(c) or c.wheel] or self.chains
        hinges = [j for c in legs for k in c.links for j in self.links.joints(k)]
        axes = [self.links.axis(j) for j in hinges if j.kind == "hinge"]
        level = np.array([a[:2] for a in axes if abs(a[2]) < LEVEL_AXIS]).reshape(-1, 2)
        if self.base[0] == "fixed" or not len(level):
            left = np.array([0.0, 1.0])
        else:
            left = np.linalg.eigh(level.T @ level)[1][:, -1]
        left = left / max(float(np.linalg.norm(left)), 1e-12)
        ahead = np.array([left[1], -left[0]])
        sign = np.sign(self._reach_ahead(ahead)) or np.sign(ahead @ [1.0, 0.5])
        return sign * ahead, sign * left

    @cached_property
    def pair(self) -> list[Chain]:
        """Two limbs on a fixed base beside which all others are short and have few joints."""
        if self.base[0] != "fixed" or len(self.chains) < 2:
            return []
        length = {chain: self.search.length(chain.links) for chain in self.chains}
        *others, second, first = sorted(self.chains, key=lambda chain: length[chain])
        short = all(
            length[each] <= SHORT * length[second] and self._driven(each) < ARM for each in others
        )
        return [each for each in self.chains if each in (first, second)] if short else []

    def _driven(self, chain: Chain) -> int:
        """Return how many joints of a chain actuators move."""
        return sum(j.name in self.moved for k in chain.links for j in self.links.joints(k))

    def _as_given(self, way: Array) -> tuple[Array, Array]:
        """Return ahead and left of a direction (3,) in the axes of the base."""
        where = f"ahead = {way.tolist()} of '{self.system.name}'"
        if self.base[0] == "fixed":
            raise ProblemError(f"{where}, whose base is fixed; expected none: it has no way ahead")
        level = self.links.direction(self.base[1], way)[:2]
        length = float(np.linalg.norm(level))
        if length <= LEVEL_AXIS * float(np.linalg.norm(way)):
            raise ProblemError(f"{where} is vertical where it stands; expected a level direction")
        ahead = level / length
        return ahead, np.array([-ahead[1], ahead[0]])

    def _between(self, *pair: Chain) -> tuple[Array, Array]:
        """Return ahead and left of two limbs on a fixed base, which reach ahead."""
        first, second = (self._mount_place(chain)[:2] for chain in pair)
        tips = np.array([self.links.center(chain.tip)[:2] for chain in pair])
        left = (first - second) / max(float(np.linalg.norm(first - second)), 1e-12)
        ahead = np.array([left[1], -left[0]])
        sign = -1.0 if (tips.mean(axis=0) - (first + second) / 2) @ ahead < 0 else 1.0
        return sign * ahead, sign * left

    def _reach_ahead(self, ahead: Array) -> float:
        """Return by how much more feet, or limbs without feet, reach ahead than back; or 0."""
        if self.base[0] == "fixed":
            return 0.0
        reach = 0.0
        for chain in self.chains:
            if not self._stands(chain) or chain.wheel:
                continue
            joint = self.links.joints(chain.tip)[-1]
            points = np.vstack([self.links.points(geom) for geom in self._geoms_of_foot(chain)])
            along = (points[:, :2] - self.links.anchor(joint)[:2]) @ ahead
            reach += float(along.max() + along.min())
        flat = abs(reach) > BESIDE * self.height
        if flat and sum(self._stands(chain) for chain in self.chains) == 2:
            return reach
        center = self.links.center(self.base[1])[:2]
        others = [c for c in self.chains if not self._stands(c) and not c.wheel]
        mounts = [self._mount_place(chain)[:2] - center for chain in others]
        side = float(sum((np.array(mounts) @ ahead).tolist())) if mounts else 0.0
        return side if abs(side) > BESIDE * self.height else 0.0

    def _looks_back(self) -> list[str]:
        """Return that ahead is not where the base's own x axis points, where nothing decides it."""
        known = self.base[0] == "fixed" or self.own_ahead is not None
        if known or self._reach_ahead(self.axes[0]):
            return []
        own = self.links.direction(self.base[1], np.array([1.0, 0.0, 0.0]))[:2]
        if own @ self.axes[0] > -LEVEL_AXIS:
            return []
        return ["ahead is along x of the world, a guess: the x axis of its base points back"]

    def _mount_place(self, chain: Chain) -> Array:
        joints = self.links.joints(chain.links[0])
        return self.links.anchor(joints[0]) if joints else self.links.place(chain.tip, np.zeros(3))

    def _stands(self, chain: Chain) -> bool:
        return any(link in self.feet for link in chain.links)

    def _geoms_of_foot(self, chain: Chain) -> list[Geom]:
        names = [name for link in chain.links for name in self.feet.get(link, [])]
        return [geom for geom in self.links.tree.geoms if geom.name in names]

    def _limb(self, chain: Chain, *, of_hand: bool = False) -> RobotLimb:
        links = self.links
        joints = [joint.name for link in chain.links for joint in links.joints(link)]
        foot, length = None, self.search.length(chain.links)
        if self._stands(chain) and self.base[0] != "fixed" and not chain.wheel:
            foot = foot_of(links, self._geoms_of_foot(chain), self.height)
        return RobotLimb(
            name=links.name(chain.tip),
            role="finger" if of_hand else self._role(chain, foot is not None),
            side=self._side(chain),
            ahead=self._beside(chain, self.axes[0]) > 0,
            mount=links.name(chain.mount) if chain.mount else "world",
            joints=tuple(joints),
            length=length,
            foot=foot,
            tool=tool_of(links, chain.links, length),
            fingers=tuple(self._limb(each, of_hand=True) for each in chain.fingers),
        )

    def _role(self, chain: Chain, stands: bool) -> LimbRole:
        if chain.wheel or stands:
            return "wheel" if chain.wheel else "leg"
        if self._is_linkage:
            return "other"
        count, several = self._driven(chain), len(self.chains) > 1
        if self.base[0] == "fixed" and several and not any(c.fingers for c in self.chains):
            if len(self.pair) < 2 or min(map(self._driven, self.pair)) < ARM:
                return "finger"
            if chain in self.pair:
                return "arm"
        if chain.fingers or count >= ARM or not several:
            return "arm"
        if self._side(chain) != "middle":
            return "arm" if count > 1 else "other"
        mounts = [float(self._mount_place(each)[2]) for each in self.chains]
        return "head" if self._mount_place(chain)[2] >= max(mounts) else "other"

    def _side(self, chain: Chain) -> Side:
        beside = self._beside(chain, self.axes[1])
        if len(self.chains) == 1 or abs(beside) < BESIDE * self.height:
            return "middle"
        return "left" if beside > 0 else "right"

    def _beside(self, chain: Chain, way: Array) -> float:
        """Return how far the mount of a limb is from the middle along a (2,) direction, m."""
        center = self.links.center(self.base[1])[:2]
        if self.base[0] == "fixed":
            center = np.mean([self._mount_place(each)[:2] for each in self.chains], axis=0)
        return float((self._mount_place(chain)[:2] - center) @ way)

    def _kind(self, limbs: Sequence[RobotLimb]) -> tuple[RobotKind, list[str]]:
        """Return the kind of the robot, and what is not sure of it."""
        if not self.roots:
            return "other", ["nothing in it moves"]
        roles = [limb.role for limb in limbs]
        counts = {role: roles.count(role) for role in ("arm", "leg", "wheel")}
        if self.base[0] == "fixed":
            return self._kind_of_fixed(limbs, counts["arm"])
        own = {joint.name for joint in self.links.joints(self.base[1])}
        if self.base[0] == "floating" and own.issuperset(self.roles.driven) and self.system.nu:
            return "drone", []
        if counts["wheel"] > 1 or (
            self.base[0] == "planar" and own.intersection(self.roles.driven)
        ):
            return "wheeled base", []
        if counts["leg"] == 4:
            return "quadruped", []
        if counts["leg"] == 2:
            return ("humanoid" if counts["arm"] > 1 else "biped"), []
        none = "no limb touches the ground: its limbs have no shapes that may, or it has no legs"
        legs = f"{counts['leg']} limbs stand on the ground"
        return "other", [legs if counts["leg"] else none]

    @property
    def _is_linkage(self) -> bool:
        """Whether loops join all limbs on a fixed base, or join them with it."""
        groups = self.groups
        joined = len(groups) == 1 and len(self.chains) > 1
        return self.base[0] == "fixed" and (joined or any(-1 in group for group in groups))

    def _kind_of_fixed(self, limbs: Sequence[RobotLimb], arms: int) -> tuple[RobotKind, list[str]]:
        if self._is_linkage:
            return "other", ["loops join its limbs, or close on the world: a linkage"]
        if arms:
            joints = [joint for limb in limbs for joint in limb.joints if limb.role == "arm"]
            if not self.moved.issuperset(joints) or (len(joints) < 2 and arms == 1):
                return "other", ["not all joints of its chain are driven, or it is one joint"]
            return ("arm" if arms == 1 else "bimanual"), []
        return ("hand" if len(self.groups) > 2 else "gripper"), []
