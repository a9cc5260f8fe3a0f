"""The points of each rigid body, of frames of both kinds.

Sites and bodies of a model belong to the body that the model's tree fixes them to. Of frames that
are given as expressions nothing is known but their poses: such a point i belongs to the body that
carries a frame B if its coordinates in the axes of the body,

    r_i = R_Bᵀ (p_i - p_B),

are the same at sampled poses, whether constraints hold there or not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.system.expression_frames import orthonormality_error
from mbcasadi.system.frames import Carrier, FrameFunctions
from mbcasadi.system.system import System

Array = NDArray[np.float64]

RIGID = 1e-9
"""A coordinate or distance that varies by less than this share of the model's size is constant."""

COORDINATE_ROUNDING = 1e-12
"""Coordinates below this share of the model's size are rounding errors of zeros."""

LEAST_POSES = 3
"""Sampled poses at which all points have to be numbers."""


@dataclass(frozen=True)
class RigidPoints:
    """Points of one rigid body.

    Attributes:
        members: indices into the list of frames.
        frame: the axes of the body, with the origin at the mean of the points.
        arms: (k, 3) points in these axes, m.
    """

    members: tuple[int, ...]
    frame: FrameFunctions
    arms: Array


@dataclass(frozen=True)
class SampledPoses:
    """Poses of all frames at n configurations where they are numbers.

    Attributes:
        configurations: (n, nq).
        p, R: (n, 3), (n, 3, 3) of each frame.
    """

    configurations: Array
    p: tuple[Array, ...]
    R: tuple[Array, ...]

    @property
    def size(self) -> float:
        """Largest coordinate of a point, m."""
        return max(float(np.abs(p).max()) for p in self.p)

    def are_constant(self, values: Array) -> bool:
        """Return whether lengths (n, k), m, are the same in all samples, within rounding."""
        return bool(np.ptp(values, axis=0).max() <= RIGID * self.size)

    def in_axes_of(self, frame: int, point: int) -> Array:
        """Return the origin of one frame in the axes of another (n, 3), m."""
        away = self.p[point] - self.p[frame]
        return np.asarray(np.einsum("nji,nj->ni", self.R[frame], away))

    def distance(self, first: int, second: int) -> Array:
        """Return the distance of two origins (n, 1), m."""
        away = self.p[first] - self.p[second]
        return np.asarray(np.linalg.norm(away, axis=1, keepdims=True))


def points_by_body(system: System, frames: Sequence[FrameFunctions]) -> tuple[RigidPoints, ...]:
    """Group the origins of frames by the rigid body that carries them.

    Raises:
        ProblemError: a frame is fixed to the world; points without a rotation share a body; a
            rotation is one only where constraints hold.
        ShapeError: a frame is NaN or infinite at nearly all sampled poses.
    """
    for frame in frames:
        _require_moving(frame, _body(frame) != 0)
    expressions = [i for i, frame in enumerate(frames) if _body(frame) is None]
    if not expressions:
        return tuple(_points_on_tree(frames, body) for body in _tree_bodies(frames))
    closed = [q for q, _ in system.scales.states]
    anywhere = _sample(frames, [*closed, *_moved(system, closed)])
    for i in expressions:
        _require_moving(frames[i], not anywhere.are_constant(anywhere.p[i]))
    bodies = _bodies(frames, anywhere)
    _require_rotations(frames, bodies, _sample(frames, closed), anywhere)
    return tuple(_measured_points(frames, anywhere, body) for body in bodies)


def _body(frame: FrameFunctions) -> int | None:
    """Return the index of the body of a tree; None for expressions."""
    return None if frame.carrier is None else frame.carrier.body


def _rigid_set(frame: FrameFunctions) -> tuple[object, ...]:
    """Return what is equal for points of a tree that keep their places to each other.

    Points that roll over the surface do where they roll alike.
    """
    rolling = () if frame.carrier is None else frame.carrier.rolling
    return (_body(frame), *rolling)


def _require_moving(frame: FrameFunctions, moves: bool) -> None:
    if not moves:
        raise ProblemError(
            f"contact '{frame.name}' is fixed to the world; expected a frame that moves"
        )


def _moved(system: System, poses: Sequence[Array]) -> list[Array]:
    """Return poses at random around others, off the constraints."""
    rng, scale = np.random.default_rng(0), system.scales.coordinates
    steps = [scale * rng.standard_normal(system.nv) for _ in poses]
    return [np.array(system.integrate(q, dq)).ravel() for q, dq in zip(poses, steps, strict=True)]


def _sample(
    frames: Sequence[FrameFunctions], configurations: Sequence[Array] | Array
) -> SampledPoses:
    """Return the poses at those configurations where all frames are numbers."""
    values = [[frame.pose(q) for q in configurations] for frame in frames]
    p = np.array([[np.array(pose[0]).ravel() for pose in poses] for poses in values])
    R = np.array([[np.array(pose[1]) for pose in poses] for poses in values])
    finite = np.isfinite(p).all(axis=2) & np.isfinite(R).all(axis=(2, 3))
    usable = finite.all(axis=0)
    if usable.sum() < min(LEAST_POSES, len(configurations)):
        worst = int(finite.sum(axis=1).argmin())
        raise ShapeError(
            f"frame '{frames[worst].name}' is NaN or infinite at {np.sum(~finite[worst])} of "
            f"{len(configurations)} sampled poses; expected numbers where the mechanism moves"
        )
    return SampledPoses(np.array(configurations)[usable], tuple(p[:, usable]), tuple(R[:, usable]))


def _tree_bodies(frames: Sequence[FrameFunctions]) -> list[list[int]]:
    """Return the members of each body, of frames of a tree."""
    bodies: dict[tuple[object, ...], list[int]] = {}
    for i, frame in enumerate(frames):
        bodies.setdefault(_rigid_set(frame), []).append(i)
    return list(bodies.values())


def _bodies(frames: Sequence[FrameFunctions], poses: SampledPoses) -> list[list[int]]:
    """Return the members of each body; the first is one that knows most of the body."""
    bodies: list[list[int]] = []
    ranks = [(frame.carrier is None, _body(frame) is None) for frame in frames]
    for i in sorted(range(len(frames)), key=lambda i: ranks[i]):
        for body in bodies:
            if _is_on(frames, poses, body[0], i):
                body.append(i)
                break
        else:
            bodies.append([i])
    return sorted(bodies, key=min)


def _is_on(frames: Sequence[FrameFunctions], poses: SampledPoses, first: int, point: int) -> bool:
    """Return whether a point is one of the body of another frame."""
    if frames[first].carrier is None:
        return False
    bodies = (_body(frames[first]), _body(frames[point]))
    if None not in bodies:
        return _rigid_set(frames[first]) == _rigid_set(frames[point])
    return poses.are_constant(poses.in_axes_of(first, point))


def _require_rotations(
    frames: Sequence[FrameFunctions],
    bodies: Sequence[Sequence[int]],
    closed: SampledPoses,
    anywhere: SampledPoses,
) -> None:
    """Raise for points that move as those of one body, and cannot be recognised as such.

    Args:
        frames: of all points.
        bodies: the members of each body.
        closed: poses where constraints hold.
        anywhere: these and others.
    """
    for pair in _pairs_across(bodies):
        if not closed.are_constant(closed.distance(*pair)):
            continue
        names = " and ".join(f"'{frames[i].name}'" for i in pair)
        known = [i for i in pair if frames[i].carrier is not None]
        if not known:
            raise ProblemError(
                f"contacts {names} keep their distance of {closed.distance(*pair)[0, 0]:.3g} "
                "m, as points of one rigid body do, and the forces inside a body need its axes; "
                "expected rotation= in with_frame of one of them"
            )
        if any(orthonormality_error(anywhere.R[i]) > RIGID for i in known):
            raise ProblemError(
                f"contacts {names} are points of one rigid body only where the constraints hold; "
                "expected a rotation at every q: divide Euler parameters by their length"
            )


def _pairs_across(bodies: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Return all pairs of points of different bodies."""
    for k, body in enumerate(bodies):
        for other in bodies[k + 1 :]:
            yield from ((i, j) for i in body for j in other)


def _points_on_tree(frames: Sequence[FrameFunctions], members: Sequence[int]) -> RigidPoints:
    """Return the points of a body of a tree; a single point needs no other frame than its own."""
    carriers = [carrier for i in members if (carrier := frames[i].carrier) is not None]
    if len(members) == 1:
        return _single_point(frames, members[0])
    points = np.array([carrier.point for carrier in carriers])
    return _centred(members, carriers[0], points, float(np.abs(points).max()))


def _measured_points(
    frames: Sequence[FrameFunctions], poses: SampledPoses, body: Sequence[int]
) -> RigidPoints:
    """Return the points of a body in its axes, as sampled."""
    carrier = frames[body[0]].carrier
    if len(body) == 1 or carrier is None:
        return _single_point(frames, body[0])
    members = sorted(body)
    sample = _sample(
        [carrier.frame_at(np.zeros(3)), *(frames[i] for i in members)], poses.configurations
    )
    points = [sample.in_axes_of(0, 1 + k).mean(axis=0) for k in range(len(members))]
    return _centred(members, carrier, np.array(points), sample.size)


def _single_point(frames: Sequence[FrameFunctions], member: int) -> RigidPoints:
    return RigidPoints((member,), frames[member], np.zeros((1, 3)))


def _centred(members: Sequence[int], carrier: Carrier, points: Array, size: float) -> RigidPoints:
    """Return points with their mean as the origin.

    Args:
        members: indices of the points.
        carrier: the body.
        points: (k, 3) in the body's axes, m.
        size: of the numbers that the points were computed from, m.
    """
    centre = points.mean(axis=0)
    arms = points - centre
    arms[np.abs(arms) < COORDINATE_ROUNDING * size] = 0.0
    return RigidPoints(tuple(members), carrier.frame_at(centre), arms)
