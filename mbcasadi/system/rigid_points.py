"""Points of one rigid body, recognised by the poses of their frames.

A point i belongs to the body that carries a frame B if its coordinates in the axes of the body,

    r_i = R_Bᵀ (p_i - p_B),

are the same at all poses, whether constraints hold there or not. Frames of a model and frames that
are given as expressions are treated alike: only `FrameFunctions` is asked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.system.frames import FrameFunctions, orthonormality_error
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

    def in_axes_of(self, body: int, point: int) -> Array:
        """Return the origin of one frame in the axes of another (n, 3), m."""
        return coordinates(self.R[body], self.p[point] - self.p[body])

    def distance(self, first: int, second: int) -> Array:
        """Return the distance of two origins (n, 1), m."""
        return np.linalg.norm(self.p[first] - self.p[second], axis=1, keepdims=True)


def points_by_body(system: System, frames: Sequence[FrameFunctions]) -> tuple[RigidPoints, ...]:
    """Group the origins of frames by the rigid body that carries them.

    Raises:
        ProblemError: a frame is fixed to the world; points without a rotation share a body with
            others; a rotation is one only where constraints hold.
        ShapeError: a frame is NaN or infinite at nearly all sampled poses.
    """
    if not frames:
        return ()
    closed = [q for q, _ in system.scales.states]
    rng, scale = np.random.default_rng(0), system.scales.coordinates
    steps = [scale * rng.standard_normal(system.nv) for _ in closed]
    moved = [np.array(system.integrate(q, dq)).ravel() for q, dq in zip(closed, steps, strict=True)]
    anywhere = _sample(frames, [*closed, *moved])
    for i, frame in enumerate(frames):
        if anywhere.are_constant(anywhere.p[i]):
            raise ProblemError(
                f"contact '{frame.name}' is fixed to the world; expected a frame that moves"
            )
    bodies = _bodies(frames, anywhere)
    _require_rotations(frames, bodies, _sample(frames, closed), anywhere)
    return tuple(_rigid_points(frames, anywhere, body) for body in bodies)


def coordinates(R: Array, vectors: Array) -> Array:
    """Return vectors (n, 3) in the axes of rotations (n, 3, 3)."""
    return np.asarray(np.einsum("nji,nj->ni", R, vectors))


def _sample(frames: Sequence[FrameFunctions], configurations: Sequence[Array]) -> SampledPoses:
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


def _bodies(frames: Sequence[FrameFunctions], poses: SampledPoses) -> list[tuple[int, ...]]:
    """Return the members of each body; the first has a rotation where one of them has."""
    bodies: list[list[int]] = []
    for i in sorted(range(len(frames)), key=lambda i: frames[i].carrier is None):
        for body in bodies:
            has_axes = frames[body[0]].carrier is not None
            if has_axes and poses.are_constant(poses.in_axes_of(body[0], i)):
                body.append(i)
                break
        else:
            bodies.append([i])
    return [tuple(body) for body in sorted(bodies, key=min)]


def _require_rotations(
    frames: Sequence[FrameFunctions],
    bodies: Sequence[tuple[int, ...]],
    closed: SampledPoses,
    anywhere: SampledPoses,
) -> None:
    """Raise for points that move as those of one body, and are not recognised as such.

    Args:
        frames: of all points.
        bodies: the members of each body.
        closed: poses where constraints hold.
        anywhere: these and others.
    """
    for first, second in _pairs_across(bodies):
        if not closed.are_constant(closed.distance(first, second)):
            continue
        names = f"contacts '{frames[first].name}' and '{frames[second].name}'"
        if None in (frames[first].carrier, frames[second].carrier):
            raise ProblemError(
                f"{names} keep their distance of {float(closed.distance(first, second)[0, 0]):.3g} "
                "m, as points of one rigid body do, and the forces inside a body need its axes; "
                "expected rotation= in with_frame of both"
            )
        if orthonormality_error(anywhere.R[first]) > RIGID:
            raise ProblemError(
                f"{names} are points of one rigid body only where the constraints hold; expected a "
                "rotation at every q: divide Euler parameters by their length"
            )


def _pairs_across(bodies: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, int]]:
    """Return all pairs of points of different bodies."""
    for k, body in enumerate(bodies):
        for other in bodies[k + 1 :]:
            yield from ((i, j) for i in body for j in other)


def _rigid_points(
    frames: Sequence[FrameFunctions], poses: SampledPoses, body: tuple[int, ...]
) -> RigidPoints:
    """Return the points of a body in its axes; a single point needs none."""
    carrier = frames[body[0]].carrier
    if len(body) == 1 or carrier is None:
        return RigidPoints(body, frames[body[0]], np.zeros((1, 3)))
    members = tuple(sorted(body))
    axes = _sample([carrier(np.zeros(3))], list(poses.configurations))
    points = np.array(
        [coordinates(axes.R[0], poses.p[i] - axes.p[0]).mean(axis=0) for i in members]
    )
    centre = points.mean(axis=0)
    arms = points - centre
    arms[np.abs(arms) < COORDINATE_ROUNDING * max(poses.size, axes.size)] = 0.0
    return RigidPoints(members, carrier(centre), arms)
