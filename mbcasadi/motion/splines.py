"""Splines through way points, of vectors and of poses.

A spline that rests at its ends is of degree five, has four continuous derivatives, and of all
motions through the way points at their times the least integral of the squared jerk. One with
free ends is cubic, with two continuous derivatives (`not-a-knot`, as SciPy's `CubicSpline`).

Orientations are interpolated as unit quaternions, `q = s / |s|` with s a spline of the same kind
through the quaternions of the way points. So q has as many continuous derivatives as s, passes
through all way points, and does not depend on the frames that orientations are seen from or of:
`a ∘ q ∘ b` is the spline of `a ∘ q_k ∘ b`. Between two orientations θ apart the speed of q
departs from that of an angle by a factor of 1 / cos²(θ/4) at most, 7 % for 60°.
"""

import math
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.motion.motions import (
    POSE_PARTS,
    VECTOR_PARTS,
    PoseMotion,
    VectorMotion,
    hold_outside,
    pose_rates,
)
from mbcasadi.motion.pose import Pose
from mbcasadi.shapes import real_array
from mbcasadi.spatial import normalise
from mbcasadi.spatial.quaternion_columns import quat_of

Array = NDArray[np.float64]

WIDEST = 2 * np.pi / 3
"""Rad, largest turn from one way point to the next."""

SHORTEST = 0.5
"""Least length of s, between unit quaternions."""

PER_INTERVAL = 16
"""Places in each interval at which the length of s is checked."""

REST, FREE = 5, 3
"""Degrees of splines at rest at their ends, and with free ends."""


@checked
def spline(times: ArrayLike, poses: Sequence[Pose], *, rest: bool = True) -> PoseMotion:
    """Return a smooth motion through poses; see the module for its continuity.

    Args:
        times: (n,) s, growing; n >= 2, and 4 with free ends.
        poses: n way points.
        rest: whether it begins and ends at rest, without acceleration; or its ends are free, for
            a motion that was recorded.

    Raises:
        ShapeError: another number of poses, NaN or infinity.
        ProblemError: times that do not grow, too few; poses of expressions, or orientations that
            are too far apart.
    """
    t = _times(times, len(poses), rest)
    points = np.array([pose.qpos for pose in poses]) if _all_numbers(poses) else np.zeros((0, 7))
    _align(t, points[:, 3:])
    curve = _curve(t, points, rest)
    _require_length(t, curve)
    clock = ca.MX.sym("t")
    jets = [part for each in _derivatives(curve, clock) for part in ca.vertsplit(each, [0, 3, 7])]
    function = ca.Function("spline", [clock], _pose_of_jets().call(jets), ["t"], [*POSE_PARTS])
    ends = float(t[0]), float(t[-1])
    return PoseMotion(hold_outside(function, 2, ends), *ends)


@checked
def vector_spline(times: ArrayLike, points: ArrayLike, *, rest: bool = True) -> VectorMotion:
    """Return a smooth motion through vectors, of joints or of a point; as `spline`.

    Args:
        times: (n,) s, growing; n >= 2, and 4 with free ends.
        points: (n, k) way points.
        rest: as in `spline`.

    Raises:
        ShapeError: a wrong shape, NaN or infinity.
        ProblemError: times that do not grow, or too few.
    """
    values = real_array("points", points)
    if values.ndim != 2 or not values.size or not np.all(np.isfinite(values)):
        raise ShapeError(f"points has shape {values.shape}; expected (n, k), all finite")
    t = _times(times, len(values), rest)
    clock = ca.MX.sym("t")
    parts = _derivatives(_curve(t, values, rest), clock)
    function = ca.Function("spline", [clock], parts, ["t"], VECTOR_PARTS)
    ends = float(t[0]), float(t[-1])
    return VectorMotion(hold_outside(function, 1, ends), *ends)


def _times(times: ArrayLike, count: int, rest: bool) -> Array:
    t, least = real_array("times", times), 2 if rest else FREE + 1
    if t.shape != (count,) or not np.all(np.isfinite(t)):
        raise ShapeError(f"times has shape {t.shape}; expected ({count},), all finite")
    if count < least or not np.all(np.diff(t) > 0):
        raise ProblemError(f"times {t}; expected at least {least}, each later than that before, s")
    return t


def _all_numbers(poses: Sequence[Pose]) -> bool:
    if not all(isinstance(pose.qpos, np.ndarray) for pose in poses):
        raise ProblemError("a pose of expressions; expected numbers, or pose_motion")
    return True


def _align(t: Array, quaternions: Array) -> None:
    """Give quaternions the signs by which each is next to the one before.

    Raises:
        ProblemError: two of them are too far apart.
    """
    for k in range(1, len(quaternions)):
        cosine = float(quaternions[k] @ quaternions[k - 1])
        quaternions[k] *= 1.0 if cosine >= 0 else -1.0
        turn = 2 * np.arccos(min(abs(cosine), 1.0))
        if turn > WIDEST:
            raise ProblemError(
                f"from {t[k - 1]:g} s to {t[k]:g} s the pose turns by {np.degrees(turn):.0f}°; "
                f"expected at most {np.degrees(WIDEST):.0f}°: put a way point between them"
            )


def _curve(t: Array, points: Array, rest: bool) -> Any:
    """Return SciPy's B-spline through points (n, k)."""
    from scipy.interpolate import make_interp_spline

    if not rest:
        return make_interp_spline(t, points, k=FREE)
    still = [(order, np.zeros(points.shape[1])) for order in (1, 2)]
    return make_interp_spline(t, points, k=REST, bc_type=(still, still))


def _derivatives(curve: Any, clock: ca.MX) -> list[ca.MX]:
    """Return a B-spline and its first two derivatives as expressions (k, 1).

    They are polynomials of the time since the way point before: C of CasADi's own B-splines calls
    itself, so that the stack that it needs has no bound.
    """
    ends = np.unique(curve.t)
    degrees = range(curve.k, -1, -1)
    factors = np.array([curve(ends[:-1], nu=k) / math.factorial(k) for k in degrees])
    piece = ca.low(ca.MX(ca.DM(ends)), clock)
    since = clock - ca.MX(ca.DM(ends))[piece]
    orders, count, size = factors.shape
    table = ca.DM(factors.transpose(1, 0, 2).reshape(count, orders * size).T)
    terms = ca.vertsplit(ca.MX(table)[:, piece], size)  # highest order first
    expressions = []
    for _ in VECTOR_PARTS:
        value = terms[0]
        for term in terms[1:]:
            value = value * since + term
        expressions.append(value)
        terms = [(len(terms) - 1 - k) * term for k, term in enumerate(terms[:-1])]
    return expressions


def _require_length(t: Array, curve: Any) -> None:
    """Raise `ProblemError` where a spline of quaternions comes near zero."""
    shares = np.arange(PER_INTERVAL) / PER_INTERVAL
    times = (t[:-1, None] + np.diff(t)[:, None] * shares).ravel()
    lengths = np.linalg.norm(curve(times)[:, 3:], axis=1)
    if lengths.min() < SHORTEST:
        raise ProblemError(
            f"the orientations swing far beyond the way points near {times[lengths.argmin()]:.3g} "
            "s; put more way points there, at even times"
        )


def _pose_of_jets() -> ca.Function:
    """Return (p, s, dp, ds, ddp, dds) → the parts of a motion, with the orientation s / |s|."""
    t, jets = ca.SX.sym("t"), [ca.SX.sym("x", size) for size in (3, 4) * 3]
    p, s = (jets[k] + t * jets[k + 2] + t**2 / 2 * jets[k + 4] for k in (0, 1))
    unit = ca.vertcat(*normalise(quat_of(s)))
    parts = [p, unit, *pose_rates(t, p, unit)]
    now = ca.substitute(parts, [t], [ca.SX(0)])
    return ca.Function("pose_of_jets", jets, now)
