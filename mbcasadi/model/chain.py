"""A rigid tree as links, one for each joint, in frames that keep the recursions short.

Bodies that are welded together become one link. A link's z axis is its joint axis, and its
origin and x axis are chosen such that the constant transforms hold as few numbers as possible
(`placement`). Mass that a joint cannot move relative to its parent is counted with the parent
(`regroup`), which leaves the links of an arm of hinges without mass.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Body, Joint, RigidTree
from mbcasadi.errors import ProblemError
from mbcasadi.model.placement import Pose, decompose, link_frame, pose_of_quat
from mbcasadi.model.regroup import NumericMoments, moments_of_body, regroup
from mbcasadi.spatial import Moments, Step, is_zero

Array = NDArray[np.float64]
WORLD = -1

CHAINS_KEPT = 4
"""Trees whose links are kept: each member of a system, and each of its tendons, needs them."""

_kept: deque["Chain"] = deque(maxlen=CHAINS_KEPT)


@dataclass(frozen=True)
class Link:
    """What moves with one joint.

    Attributes:
        joint: the joint.
        parent: index of the parent link, `WORLD` for the fixed world.
        before: constant steps from the parent's frame to the joint, leaving the parent's origin.
        offset: constant added to the joint coordinate (hinge: rad; slide: m).
        after: shift of the origin along the joint axis (hinge), m.
        moments: constant mass moments about the link's origin, regrouped.
        children: indices of the links that it carries.
    """

    joint: Joint
    parent: int
    before: tuple[Step, ...]
    offset: float
    after: float
    moments: Moments
    children: tuple[int, ...]


@dataclass(frozen=True)
class Chain:
    """The links of a tree, and the poses of its bodies on them.

    Attributes:
        tree: the description that it was made from.
        links: in the order of the joints; a parent comes before its children.
        body_link: for each body the link that carries it, or `WORLD`.
        body_pose: for each body its constant pose in that link's frame.
    """

    tree: RigidTree
    links: tuple[Link, ...]
    body_link: tuple[int, ...]
    body_pose: tuple[Pose, ...]

    def path(self, link: int) -> tuple[int, ...]:
        """Return the links from the root to `link`, both included."""
        to_root: list[int] = []
        while link != WORLD:
            to_root.append(link)
            link = self.links[link].parent
        return tuple(reversed(to_root))


@dataclass
class _RawLink:
    """A link in MuJoCo's axes, before its own frame is chosen."""

    joint: Joint
    parent: int
    pose: Pose
    children: list[int]
    moments: NumericMoments


def chain_of(tree: RigidTree) -> Chain:
    """Return the links of a tree; the same ones for the same tree, which does not change."""
    for chain in tuple(_kept):
        if chain.tree is tree:
            return chain
    chain = _new_chain(tree)
    _kept.append(chain)
    return chain


def _new_chain(tree: RigidTree) -> Chain:
    raw, body_link, body_raw = _raw_links(tree)
    frames: list[Pose] = []
    sizes = _subtree_sizes(raw)
    for i, link in enumerate(raw):
        frames.append(_frame_of(i, raw, frames, sizes))
        link.moments = link.moments.in_frame(frames[i])
    relative = [_pose_in_parent(i, raw, frames) for i in range(len(raw))]
    regroup(
        [link.moments for link in raw], [r.parent for r in raw], [r.joint for r in raw], relative
    )
    links = tuple(_link(i, raw, relative[i]) for i in range(len(raw)))
    poses = tuple(
        pose if k == WORLD else frames[k].inverse() @ pose
        for k, pose in zip(body_link, body_raw, strict=True)
    )
    return Chain(tree, links, tuple(body_link), tuple(p.without_rounding() for p in poses))


def moving_moments(chain: Chain) -> list[Moments]:
    """Return the moments of each link with all that is fixed to it, in its axes, not regrouped.

    Raises:
        ProblemError: no body that can move has mass.
    """
    total = [NumericMoments.zero() for _ in chain.links]
    for body, link, pose in zip(chain.tree.bodies, chain.body_link, chain.body_pose, strict=True):
        if link != WORLD:
            total[link] = total[link] + _moments_on_link(body, pose)
    if all(is_zero(moments.m) for moments in total):
        raise ProblemError("no body that can move has mass: there is no centre of mass")
    return [moments.as_moments() for moments in total]


def _raw_links(tree: RigidTree) -> tuple[list[_RawLink], list[int], list[Pose]]:
    """Return the links, and for each body its link and its pose there.

    Every joint starts a link, whose raw frame is that of the body after the joint's motion.
    """
    raw: list[_RawLink] = []
    body_link, body_pose = [WORLD], [Pose.identity()]
    for body in tree.bodies[1:]:
        link = body_link[body.parent]
        pose = body_pose[body.parent] @ pose_of_quat(body.pos, body.quat)
        for j in body.joints:
            joint = tree.joints[j]
            raw.append(_RawLink(joint, link, pose, [], NumericMoments.zero()))
            if link != WORLD:
                raw[link].children.append(len(raw) - 1)
            link, pose = len(raw) - 1, Pose.identity()
        body_link.append(link)
        body_pose.append(pose)
        if link != WORLD:
            raw[link].moments = raw[link].moments + _moments_on_link(body, pose)
    return raw, body_link, body_pose


def _moments_on_link(body: Body, pose: Pose) -> NumericMoments:
    return moments_of_body(body).in_frame(pose.inverse())


def _frame_of(i: int, raw: list[_RawLink], frames: list[Pose], sizes: list[int]) -> Pose:
    """Return the frame of link i in its raw axes, laid out for its largest child subtree.

    Args:
        i: index of the link.
        raw: all links.
        frames: of the links before i.
        sizes: number of links in the subtree of each.
    """
    link = raw[i]
    parent = Pose.identity() if link.parent == WORLD else frames[link.parent]
    parent_in_raw = (parent.inverse() @ link.pose).inverse()
    largest = max(link.children, key=lambda c: (sizes[c], -c), default=None)
    child = None if largest is None else (raw[largest].joint, raw[largest].pose)
    s = link.moments.s
    direction = np.zeros(3) if s.dtype == object else s  # symbols point nowhere
    return link_frame(link.joint, parent_in_raw, child, direction)


def _subtree_sizes(raw: list[_RawLink]) -> list[int]:
    """Return the number of links that each link carries, itself included; children come last."""
    sizes = [1] * len(raw)
    for i in reversed(range(len(raw))):
        sizes[i] += sum(sizes[c] for c in raw[i].children)
    return sizes


def _pose_in_parent(i: int, raw: list[_RawLink], frames: list[Pose]) -> Pose:
    link = raw[i]
    parent = Pose.identity() if link.parent == WORLD else frames[link.parent]
    return (parent.inverse() @ link.pose @ frames[i]).without_rounding()


def _link(i: int, raw: list[_RawLink], relative: Pose) -> Link:
    link = raw[i]
    before, offset, after = decompose(link.joint, relative)
    return Link(
        joint=link.joint,
        parent=link.parent,
        before=before,
        offset=offset,
        after=after,
        moments=link.moments.as_moments(),
        children=tuple(link.children),
    )
