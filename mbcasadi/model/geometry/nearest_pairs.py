"""The nearest pairs of many convex geoms: a fixed number of rows, chosen in every tick.

Of each pair a lower bound of the gap is known at little cost, the distance of two capsules about
the geoms, or of a plane and a capsule. Pairs with the least bounds get a row. All sizes are fixed,
and so is the sequence of operations.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Frame, Geom, RigidTree
from mbcasadi.linalg.least_entries import least_entries
from mbcasadi.linalg.side_by_side import SETS
from mbcasadi.model.chain import chain_of
from mbcasadi.model.frames import frame_bias, frame_pose, frame_velocity, motion_axes
from mbcasadi.model.geometry.convex_pairs import BLUNTEST, SHARPEST
from mbcasadi.model.geometry.distance_row import MOTION_SIZE, distance_rows
from mbcasadi.model.geometry.summands import Summands, padded_points, summands
from mbcasadi.model.motion import link_poses
from mbcasadi.spatial import ZERO3, stack

Array = NDArray[np.float64]

POINT = 1e-12
"""Square of a length of a capsule's axis that counts as none, m²."""


class DistanceRows(NamedTuple):
    """Rows of gaps.

    Attributes:
        J: (k, nv) `dgap/dt = J v`.
        gap: (k, 1) m.
        bias: (k, 1) `d²gap/dt²` at zero joint acceleration, m/s².
    """

    J: ca.SX
    gap: ca.SX
    bias: ca.SX


def nearest_rows(
    tree: RigidTree,
    pairs: Sequence[tuple[Geom, Geom]],
    count: int,
    smoothing: float,
    state: tuple[ca.SX, ca.SX],
) -> DistanceRows:
    """Return the rows of the pairs that are nearest, the nearest first.

    Where all pairs get a row they keep their order.

    Args:
        tree: the mechanism.
        pairs: convex geoms, or a plane and a convex one.
        count: number of rows.
        smoothing: what rounded edges may take from a gap, m.
        state: q, v.
    """
    geoms, indices = _geoms_of(pairs)
    motions = ca.vertcat(*(_motion(tree, geom, state).T for geom in geoms))
    axes = _axes(tree, state[0])
    function = _rows_function(tree, geoms, indices, count, smoothing)
    return DistanceRows(*function(motions, axes))


def bounds_fun(tree: RigidTree, pairs: Sequence[tuple[Geom, Geom]]) -> ca.Function:
    """Return (q) → (bounds, places): lower bounds (k,) of the gaps of pairs, and the geoms' poses.

    Args:
        tree: the mechanism.
        pairs: as in `nearest_rows`; `places` (geoms, 12) has p and R of their geoms in the order in
            which they come, those of the first pair first.
    """
    geoms, indices = _geoms_of(pairs)
    q = ca.SX.sym("q", tree.nq)
    poses = [frame_pose(tree, _frame_of(geom), q) for geom in geoms]
    places = ca.densify(ca.vertcat(*(ca.horzcat(p.T, ca.vec(R).T) for p, R in poses)))
    placed = ca.Function("places", [q], [places], {"cse": True, "never_inline": True})
    at = ca.MX.sym("q", tree.nq)
    places_now = placed(at)
    bounds = _bounds(places_now, [shape_of(geom) for geom in geoms], indices, _are_planes(geoms))
    return ca.Function("bounds", [at], [bounds, places_now], ["q"], ["bounds", "places"])


def shape_of(geom: Geom) -> Summands:
    """Return the summands of a geom; a plane has none of any size."""
    shape = summands(geom) if geom.kind != "plane" else _plane()
    assert shape is not None  # of other kinds there is no pair
    return shape


def _plane() -> Summands:
    return Summands(np.zeros(3), np.zeros(3), np.zeros((3, 0)))


def _geoms_of(pairs: Sequence[tuple[Geom, Geom]]) -> tuple[list[Geom], list[list[int]]]:
    """Return the geoms of pairs, and the indices of the first and of the second ones."""
    geoms = list({id(geom): geom for pair in pairs for geom in pair}.values())
    place = {id(geom): k for k, geom in enumerate(geoms)}
    return geoms, [[place[id(pair[i])] for pair in pairs] for i in range(2)]


def _are_planes(geoms: Sequence[Geom]) -> Array:
    return np.array([float(geom.kind == "plane") for geom in geoms])


def _frame_of(geom: Geom) -> Frame:
    return Frame("", "geom", geom.body, geom.pos, geom.quat)


def _motion(tree: RigidTree, geom: Geom, state: tuple[ca.SX, ca.SX]) -> ca.SX:
    """Return the numbers of `MOTION` of a geom."""
    q, v = state
    frame = _frame_of(geom)
    p, R = frame_pose(tree, frame, q)
    moving = [part(tree, frame, q, v) for part in (frame_velocity, frame_bias)]
    if chain_of(tree).body_link[geom.body] < 0:
        moving = [ca.SX(6, 1), ca.SX(6, 1)]
    return ca.densify(ca.vertcat(p, ca.vec(R), *moving))


def _axes(tree: RigidTree, q: ca.SX) -> ca.SX:
    """Return (6, nv) velocity of the world's origin and angular velocity by each dof."""
    chain, axes = chain_of(tree), ca.SX(6, tree.nv)
    links = set(range(len(chain.links)))
    poses = link_poses(chain, q, links)
    for link in links:
        for dof, linear, angular in motion_axes(chain, poses, link, ZERO3):
            axes[:, dof] = stack(linear, angular)
    return ca.densify(axes)


def _rows_function(
    tree: RigidTree, geoms: list[Geom], indices: list[list[int]], count: int, smoothing: float
) -> ca.Function:
    """Return (motions, axes) → (J, gap, bias), a row for each pair that has one.

    Pairs are computed side by side; the last one is repeated until none is missing.
    """
    shapes, planes = [shape_of(geom) for geom in geoms], _are_planes(geoms)
    motions = ca.MX.sym("motions", len(geoms), MOTION_SIZE)
    axes = ca.MX.sym("axes", 6, tree.nv)
    chosen = [ca.MX(ca.DM(index)) for index in indices]
    if count < len(indices[0]):
        nearest = least_entries(_bounds(motions, shapes, indices, planes), count)
        chosen = [each[nearest] for each in chosen]
    sizes = ca.MX(ca.DM(np.array([np.r_[x.box, x.ellipsoid] for x in shapes])))
    moves = ca.MX(ca.DM(_moves(tree, geoms).T))
    padded = padded_points(shapes)
    points = ca.MX(ca.DM(np.array([np.ravel(x, "F") for x in padded])))
    rows = distance_rows(tree.nv, padded[0].shape[1], SETS)
    chosen = [ca.vertcat(each, ca.repmat(each[-1], -count % SETS)) for each in chosen]
    results_of_sets = []
    for start in range(0, count, SETS):
        places = [each[start : start + SETS] for each in chosen]
        inputs = [
            *(motions[k, :] for k in places),
            ca.horzcat(*(sizes[k, :] for k in places)),
            _points_of_pairs(points, places),
            _sharpness(shapes, places, smoothing),
            ca.MX(ca.DM(planes))[places[0]],
            moves[places[1], :] - moves[places[0], :],
            axes,
        ]
        results_of_sets.append(rows.call(inputs))
    results = [ca.vertcat(*each)[:count, :] for each in zip(*results_of_sets, strict=True)]
    return ca.Function("nearest_rows", [motions, axes], results, {"never_inline": True})


def _points_of_pairs(points: ca.MX, chosen: list[ca.MX]) -> ca.MX:
    """Return (pairs, 8 K): of each pair the points (8, K), one column after the other."""
    count = points.shape[1] // 4
    first, second = (points[k, :] for k in chosen)
    parts = [x[:, 4 * k : 4 * k + 4] for k in range(count) for x in (first, second)]
    return ca.horzcat(*parts) if parts else ca.MX(first.shape[0], 0)


def _sharpness(shapes: list[Summands], chosen: list[ca.MX], smoothing: float) -> ca.MX:
    """Return (pairs, 1) the sharpness with which a pair reaches `smoothing` beyond itself."""
    length = ca.MX(ca.DM([x.length for x in shapes]))
    of_length = ca.MX(ca.DM([x.roundable(1.0) - x.roundable(0.0) for x in shapes]))
    fixed = ca.MX(ca.DM([x.roundable(0.0) for x in shapes]))
    lengths, factors, roundable = (x[chosen[0]] + x[chosen[1]] for x in (length, of_length, fixed))
    roundable = roundable + factors * lengths
    return ca.fmax(smoothing / (roundable + smoothing / BLUNTEST), SHARPEST)


def _moves(tree: RigidTree, geoms: list[Geom]) -> Array:
    """Return (nv, geoms) one where a dof moves a geom."""
    chain = chain_of(tree)
    moves = np.zeros((tree.nv, len(geoms)))
    poses = link_poses(chain, ca.SX(tree.q0), set(range(len(chain.links))))
    for k, geom in enumerate(geoms):
        for link in chain.path(chain.body_link[geom.body]):
            for dof, *_ in motion_axes(chain, poses, link, ZERO3):
                moves[dof, k] = 1.0
    return moves


def _bounds(
    motions: ca.MX, shapes: list[Summands], indices: list[list[int]], planes: Array
) -> ca.MX:
    """Return (pairs, 1) the distance of the capsules about both geoms of each pair.

    Args:
        motions: (geoms, 12 or more) of which the first are p and R.
        shapes: of the geoms.
        indices: of the geoms of each pair.
        planes: one for each geom that is a plane, else zero.
    """
    capsules = [_capsule_about(x) for x in shapes]
    half, radii = (np.array([x[i] for x in capsules]) for i in (1, 2))
    ends = [
        ca.vertcat(*(motions[g, 3 + 3 * x[0] + i] for g, x in enumerate(capsules))) * ca.DM(half)
        for i in range(3)
    ]

    def between(first: list[int], second: list[int]) -> ca.MX:
        e = [motions[second, i] - motions[first, i] for i in range(3)]
        u1, u2 = ([ends[i][index] for i in range(3)] for index in (first, second))
        a, f = (ca.DM(np.maximum(half[index] ** 2, POINT)) for index in (first, second))
        b, c, d = _dot(u1, u2), _dot(u1, e), _dot(u2, e)
        s = _clip((c * f - b * d) / ca.fmax(a * f - b * b, POINT * POINT))
        t = _clip((b * s - d) / f)
        s = _clip((b * t + c) / a)
        apart = [e[i] + t * u2[i] - s * u1[i] for i in range(3)]
        return ca.sqrt(_dot(apart, apart)) - ca.DM(radii[first] + radii[second])

    def above(first: list[int], second: list[int]) -> ca.MX:
        e = [motions[second, i] - motions[first, i] for i in range(3)]
        n, u = [motions[first, 9 + i] for i in range(3)], [ends[i][second] for i in range(3)]
        return _dot(n, e) - ca.fabs(_dot(n, u)) - ca.DM(radii[second])

    on_planes = [k for k, g in enumerate(indices[0]) if planes[g]]
    others = [k for k, g in enumerate(indices[0]) if not planes[g]]
    found = ca.MX(0, 1)
    for own, distance in ((others, between), (on_planes, above)):
        if own:
            first, second = ([index[k] for k in own] for index in indices)
            found = ca.vertcat(found, distance(first, second))
    order = np.argsort([*others, *on_planes])
    return found if np.all(np.diff(order) == 1) else found[order.tolist()]


def _capsule_about(shape: Summands) -> tuple[int, float, float]:
    """Return the axis, half length and radius of a capsule about a shape."""
    extents = shape.box + np.max(np.abs(shape.points), axis=1, initial=0.0)
    k = int(np.argmax(extents))
    across = np.linalg.norm(np.delete(shape.box, k)) + np.max(shape.ellipsoid)
    if not shape.points.shape[1]:
        return k, float(shape.box[k]), float(across)
    widths = np.linalg.norm(np.delete(shape.points, k, axis=0), axis=0)
    half = max(float(extents[k] - np.max(widths)), 0.0)
    beyond = np.maximum(np.abs(shape.points[k]) + shape.box[k] - half, 0.0)
    return k, half, float(np.max(np.hypot(widths, beyond)) + across)


def _dot(x: list[ca.MX], y: list[ca.MX]) -> ca.MX:
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


def _clip(x: ca.MX) -> ca.MX:
    return ca.fmin(ca.fmax(x, -1), 1)
