"""Rotations, elementary motions between frames, and mass moments.

Nothing here knows a robot. Scalars may be numbers or SX; constants that are exactly zero or
one leave no trace in the expressions.
"""

from mbcasadi.linalg.arithmetic import Scalar
from mbcasadi.spatial.moments import PAIRS, Moments, body_moments
from mbcasadi.spatial.quaternions import (
    Mat3,
    Quat,
    conjugate,
    exponential,
    logarithm,
    multiply,
    normalise,
    quaternion_of,
    rotate,
    rotate_back,
    rotation,
    transpose,
    velocity_matrix,
)
from mbcasadi.spatial.steps import (
    Move,
    Rotate,
    Step,
    Turn,
    moments_to_parent,
    vector_to_child,
    vector_to_parent,
    wrench_to_parent,
)
from mbcasadi.spatial.vectors import (
    ZERO3,
    Vec3,
    add,
    cross,
    dot,
    entries,
    is_zero,
    scalar,
    scale,
    scaled,
    stack,
    subtract,
    vec3,
)

__all__ = [
    "PAIRS",
    "ZERO3",
    "Mat3",
    "Moments",
    "Move",
    "Quat",
    "Rotate",
    "Scalar",
    "Step",
    "Turn",
    "Vec3",
    "add",
    "body_moments",
    "conjugate",
    "cross",
    "dot",
    "entries",
    "exponential",
    "is_zero",
    "logarithm",
    "moments_to_parent",
    "multiply",
    "normalise",
    "quaternion_of",
    "rotate",
    "rotate_back",
    "rotation",
    "scalar",
    "scale",
    "scaled",
    "stack",
    "subtract",
    "transpose",
    "vec3",
    "vector_to_child",
    "vector_to_parent",
    "velocity_matrix",
    "wrench_to_parent",
]
