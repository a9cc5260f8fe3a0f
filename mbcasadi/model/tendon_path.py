"""Length of a spatial tendon, and its row: the generalised force of a unit tension, negative.

The path is straight pieces between sites and points of contact. A piece from a to b with the
direction u, both held on their links, adds `|b - a|/d` to the length and `uᵀ (J_b - J_a)/d` to its
row, d being the divisor of the last pulley; arcs on a geom add to the length only. Joints that
carry both ends of a piece have no part in it.

Where a tendon starts or ceases to wrap, length and row are continuous (a side site may make them
jump, as in MuJoCo), and the derivative of the row is that of one side.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import casadi as ca

from mbcasadi.description import (
    Frame,
    PathGeom,
    PathPulley,
    PathSite,
    RigidTree,
    SpatialTendon,
)
from mbcasadi.model.chain import CHAINS_KEPT, Chain, chain_of
from mbcasadi.model.frames import frame_on_link, frame_origin, motion_axes
from mbcasadi.model.motion import LinkPose, from_columns, link_poses
from mbcasadi.model.placement import Pose
from mbcasadi.model.wrapping import distance, select3, unit3, wrap
from mbcasadi.spatial import Vec3, add, dot, subtract, vec3


class Point(NamedTuple):
    """A point of a body on a link, in the world, m, and in the link's axes if it is fixed there."""

    body: int
    link: int
    place: Vec3
    local: Vec3 | None = None


class Piece(NamedTuple):
    """A straight piece: its ends, its direction and the share of its length that counts."""

    start: Point
    end: Point
    direction: Vec3
    share: float


class Path(NamedTuple):
    """A tendon's length, m, and its straight pieces."""

    length: ca.SX
    pieces: tuple[Piece, ...]


class PosedLinks(NamedTuple):
    """The links of a tree at a configuration."""

    chain: Chain
    poses: dict[int, LinkPose]


class TreePaths(NamedTuple):
    """The paths of one tree that were built, by the tendon and the size of q; see `_path_fun`."""

    tree: RigidTree
    functions: dict[tuple[int, int], ca.Function]


_kept: deque[TreePaths] = deque(maxlen=CHAINS_KEPT)


def path_length(tree: RigidTree, tendon: SpatialTendon, q: ca.SX) -> ca.SX:
    """Return the length of a spatial tendon, m."""
    return _path(tree, tendon, q)[0]


def path_row(tree: RigidTree, tendon: SpatialTendon, q: ca.SX) -> ca.SX:
    """Return `∂L/∂v` (1, nv) of a spatial tendon, MuJoCo's `ten_J`."""
    return _path(tree, tendon, q)[1]


def _path(tree: RigidTree, tendon: SpatialTendon, q: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return length and row: a call of what was built for another member of the same tree."""
    function = _path_fun(tree, tendon, int(q.numel()))
    if function.has_free():  # the tree's own numbers are expressions of another q
        return _length_and_row(tree, tendon, q)
    length, row = function(q)
    return length, row


def _path_fun(tree: RigidTree, tendon: SpatialTendon, nq: int) -> ca.Function:
    """Return (q) → (length, row) of a tendon, built once for a tree."""
    kept = next((each for each in _kept if each.tree is tree), None)
    if kept is None:
        kept = TreePaths(tree, {})
        _kept.append(kept)
    key = next(i for i, each in enumerate(tree.tendons) if each is tendon), nq
    if key not in kept.functions:
        q = ca.SX.sym("q", nq)
        outputs = _length_and_row(tree, tendon, q)
        kept.functions[key] = ca.Function("path", [q], outputs, {"allow_free": True})
    return kept.functions[key]


def _length_and_row(tree: RigidTree, tendon: SpatialTendon, q: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the length of a spatial tendon and `∂L/∂v` (1, nv)."""
    posed = posed_links(tree, tendon, q)
    row, path = ca.SX(1, tree.nv), path_of(posed, tendon)
    for piece in path.pieces:
        start, end = (set(posed.chain.path(point.link)) for point in (piece.start, piece.end))
        for links, point, sign in ((end - start, piece.end, 1), (start - end, piece.start, -1)):
            for link in sorted(links):
                for dof, linear, _ in motion_axes(posed.chain, posed.poses, link, point.place):
                    row[dof] += sign * piece.share * dot(piece.direction, linear)
    return path.length, ca.sparsify(row)


def posed_links(tree: RigidTree, tendon: SpatialTendon, q: ca.SX) -> PosedLinks:
    """Return the links that a tendon touches, at a configuration, with their ancestors."""
    chain = chain_of(tree)
    bodies = {
        tree.frames[index].body
        for element in tendon.path
        if isinstance(element, PathSite | PathGeom)
        for index in _frames_of(element)
    } | {tree.geoms[element.geom].body for element in tendon.wraps}
    return PosedLinks(chain, link_poses(chain, q, {chain.body_link[body] for body in bodies}))


def _frames_of(element: PathSite | PathGeom) -> tuple[int, ...]:
    if isinstance(element, PathSite):
        return (element.frame,)
    return () if element.side is None else (element.side,)


def path_of(posed: PosedLinks, tendon: SpatialTendon) -> Path:
    """Return the length and the pieces of a tendon's path."""
    length, pieces = ca.SX(0), []
    for start, geom, end, share in _spans(posed, tendon):
        if geom is None:
            length += share * _span_length(start, end)
            pieces += [_straight(start, end, share)]
        else:
            around, of_span = _around(posed, start, geom, end, share)
            length += share * around
            pieces += of_span
    return Path(length, tuple(pieces))


def _spans(
    posed: PosedLinks, tendon: SpatialTendon
) -> Iterator[tuple[Point, PathGeom | None, Point, float]]:
    """Yield pairs of consecutive sites with the geom between, and the share of their distance."""
    start: Point | None = None
    between: PathGeom | None = None
    divisor = 1.0
    for element in tendon.path:
        match element:
            case PathPulley():
                start, divisor = None, element.divisor
            case PathGeom():
                between = element
            case PathSite():
                end = _site(posed, posed.chain.tree.frames[element.frame])
                if start is not None:
                    yield start, between, end, 1.0 / divisor
                start, between = end, None


def _site(posed: PosedLinks, frame: Frame) -> Point:
    link, mounted = frame_on_link(posed.chain, frame)
    return Point(frame.body, link, frame_origin(posed.poses[link], mounted), vec3(mounted.p))


def _straight(start: Point, end: Point, share: float) -> Piece:
    return Piece(start, end, unit3(subtract(end.place, start.place)), share)


def _span_length(start: Point, end: Point) -> ca.SX:
    """Return the distance of two points, a number where one link carries both."""
    if start.link == end.link and start.local is not None and end.local is not None:
        return distance(start.local, end.local)
    return distance(start.place, end.place)


def _around(
    posed: PosedLinks, start: Point, geom: PathGeom, end: Point, share: float
) -> tuple[ca.SX, list[Piece]]:
    """Return length and pieces of a span with a geom between.

    Where nothing wraps, both points of contact are the end and both directions the straight one,
    so that what acts on the geom cancels.
    """
    tree = posed.chain.tree
    shape = tree.geoms[geom.geom]
    link, mounted = frame_on_link(posed.chain, Frame("", "geom", shape.body, shape.pos, shape.quat))
    side = None if geom.side is None else _site(posed, tree.frames[geom.side])
    radius = float(shape.size[0])
    contact = wrap(
        geom.kind,
        radius,
        _in_geom(posed, link, mounted, start),
        _in_geom(posed, link, mounted, end),
        None if side is None else _in_geom(posed, link, mounted, side),
        geom.generation,
    )
    pose = posed.poses[link]
    first, last = (
        Point(shape.body, link, select3(contact.touches, _from_geom(pose, mounted, x), end.place))
        for x in (contact.first, contact.last)
    )
    straight = _span_length(start, end)
    bent = distance(start.place, first.place) + contact.arc + distance(last.place, end.place)
    incoming = _straight(start, first, share)
    leaving = unit3(subtract(end.place, last.place))
    leaving = select3(contact.touches, leaving, incoming.direction)
    pieces = [incoming, Piece(last, end, leaving, share)]
    return ca.if_else(contact.touches, bent, straight), pieces


def _in_geom(posed: PosedLinks, link: int, mounted: Pose, point: Point) -> Vec3:
    """Return a point in the frame of a geom; numbers where the geom's link carries the point."""
    if point.link == link and point.local is not None:
        local = point.local
    else:
        pose = posed.poses[link]
        gap = subtract(point.place, pose.origin)
        x, y, z = (dot(column, gap) for column in pose.columns)
        local = (x, y, z)
    shifted = subtract(local, vec3(mounted.p))
    x, y, z = (dot(vec3(mounted.R[:, k]), shifted) for k in range(3))
    return x, y, z


def _from_geom(pose: LinkPose, mounted: Pose, x: Vec3) -> Vec3:
    """Return a point of a geom in the world."""
    rows = [dot(vec3(mounted.R[k]), x) + float(mounted.p[k]) for k in range(3)]
    return add(pose.origin, from_columns(pose.columns, (rows[0], rows[1], rows[2])))
