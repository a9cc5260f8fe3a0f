"""Poses, and motions of poses and of vectors: lines, circles, splines, expressions of time."""

from mbcasadi.motion.files import read_pose_motion, read_vector_motion
from mbcasadi.motion.frames import frame_pose
from mbcasadi.motion.motions import (
    PoseMotion,
    PoseSample,
    VectorMotion,
    VectorSample,
    pose_motion,
    pose_rates,
    vector_motion,
)
from mbcasadi.motion.paths import circle as circle
from mbcasadi.motion.paths import line as line
from mbcasadi.motion.paths import vector_line
from mbcasadi.motion.pose import Pose
from mbcasadi.motion.splines import spline as spline
from mbcasadi.motion.splines import vector_spline
from mbcasadi.motion.timing import ramped_time, smooth_step

__all__ = [
    "Pose",
    "PoseMotion",
    "PoseSample",
    "VectorMotion",
    "VectorSample",
    "frame_pose",
    "pose_motion",
    "pose_rates",
    "ramped_time",
    "read_pose_motion",
    "read_vector_motion",
    "smooth_step",
    "vector_line",
    "vector_motion",
    "vector_spline",
]

NOT_STARRED = ("circle", "line", "spline")
"""Public names that `import *` leaves out: they are words that people have variables of."""
