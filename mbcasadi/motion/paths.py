"""Lines and circles, from rest.

A line takes its pose from `Pose.interpolate`, a circle turns it about an axis,

    p = c + R(n, φ) (p_0 - c),      q = q_0,  or  quat(n, φ) ∘ q_0 where the frame turns along.
"""

import math

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.motion.motions import PoseMotion, VectorMotion, pose_motion, vector_motion
from mbcasadi.motion.pose import Pose
from mbcasadi.motion.timing import ramped_time, smooth_step
from mbcasadi.shapes import column, real_array, require_numbers, require_positive

NO_RADIUS = 1e-9
"""Radius of a circle, relative to the distance of its centre, that counts as none."""


@checked
def line(start: Pose, end: Pose, duration: float, *, begin: float = 0.0) -> PoseMotion:
    """Return a straight motion of least jerk, from rest to rest, turning about one axis.

    Velocity and acceleration are continuous, also at both ends.

    Args:
        start, end: poses; the turn between them is at most π, on the shorter way.
        duration: s.
        begin: s, until which it rests at the start.

    Raises:
        ProblemError: a duration that is not positive, or poses of expressions.
    """
    s, t = _share(duration, begin)
    pose = start.interpolate(end, s) if _are_numbers(start, end) else start
    return pose_motion(t, pose.position, pose.quaternion, start=begin, end=begin + duration)


@checked
def vector_line(
    start: ArrayLike, end: ArrayLike, duration: float, *, begin: float = 0.0
) -> VectorMotion:
    """Return a motion of least jerk between vectors, from rest to rest: of joints, or of a point.

    Args:
        start, end: (n,).
        duration: s.
        begin: s, until which it rests at the start.

    Raises:
        ShapeError: wrong shapes, NaN or infinity.
        ProblemError: a duration that is not positive.
    """
    first = np.atleast_1d(real_array("start", start))
    if first.ndim != 1:
        raise ShapeError(f"start has shape {first.shape}, expected (n,)")
    a, b = column("start", first, first.size), column("end", end, first.size)
    s, t = _share(duration, begin)
    return vector_motion(t, ca.DM(a) + s * ca.DM(b - a), start=begin, end=begin + duration)


@checked
def circle(
    start: Pose,
    centre: ArrayLike,
    axis: ArrayLike,
    period: float,
    *,
    ramp: float = 1.0,
    turns: float = math.inf,
    turns_along: bool = False,
    begin: float = 0.0,
) -> PoseMotion:
    """Return a motion on a circle, right-handed about an axis; it goes on, or stops after `turns`.

    Velocity and acceleration are continuous unless `ramp` is zero.

    Args:
        start: pose on the circle, where it begins.
        centre: (3,) m.
        axis: (3,) direction of the axis; its length does not count.
        period: s, of one turn at full speed.
        ramp: s, from rest to full speed, and back; 0 for full speed from the first.
        turns: after which it stops; a share of one gives an arc.
        turns_along: whether the frame turns about the axis, or keeps its orientation.
        begin: s, until which it rests at the start.

    Raises:
        ShapeError: wrong shapes, NaN or infinity.
        ProblemError: no axis, no radius, or numbers that are not positive.
    """
    require_positive(period=period)
    require_numbers(ramp=ramp)
    if not turns > 0:
        raise ProblemError(f"turns = {turns}; expected a positive number, or infinity")
    c, n = column("centre", centre, 3), column("axis", axis, 3)
    length = float(np.linalg.norm(n))
    if not length:
        raise ProblemError("axis is zero; expected a direction")
    _are_numbers(start)
    arm = start.position - c
    if np.linalg.norm(np.cross(n / length, arm)) <= NO_RADIUS * np.linalg.norm(arm):
        raise ProblemError(f"the start is on the axis of the circle, at {c}; expected a radius")
    t = ca.SX.sym("t")
    angle = _angle(t, period, ramp, turns, begin)
    turned = Pose.exp(ca.vertcat(0, 0, 0, ca.DM(n / length) * angle))
    quaternion = (turned @ start).quaternion if turns_along else ca.SX(ca.DM(start.quaternion))
    end = begin + turns * period + ramp
    return pose_motion(
        t, ca.DM(c) + turned.act(ca.SX(ca.DM(arm))), quaternion, start=begin, end=end
    )


def _angle(t: ca.SX, period: float, ramp: float, turns: float, begin: float) -> ca.SX:
    """Return the angle: what the way up misses of full speed, the way down makes up for."""
    time = ramped_time(t, begin, ramp)
    if math.isfinite(turns):
        time = time - ramped_time(t, begin + turns * period, ramp)
    return 2 * np.pi / period * time


def _share(duration: float, begin: float) -> tuple[ca.SX, ca.SX]:
    require_positive(duration=duration)
    t = ca.SX.sym("t")
    return smooth_step(t, begin, duration), t


def _are_numbers(*poses: Pose) -> bool:
    if any(not isinstance(pose.qpos, np.ndarray) for pose in poses):
        raise ProblemError("a pose of expressions; expected numbers, or pose_motion")
    return True
