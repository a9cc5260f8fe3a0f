"""From a `RigidTree`: kinematics, inertia, bias, passive forces and actuation.

All functions take and return SX columns in MuJoCo's order and frames.
"""

from mbcasadi.model.frames import frame_bias, frame_jacobian, frame_pose, frame_velocity
from mbcasadi.model.inertia import mass_matrix
from mbcasadi.model.recursion import bias_force

__all__ = [
    "bias_force",
    "frame_bias",
    "frame_jacobian",
    "frame_pose",
    "frame_velocity",
    "mass_matrix",
]
