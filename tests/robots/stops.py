"""How far joints are beyond their stops."""

import mujoco
import numpy as np

from mbcasadi.control import InverseDynamicsQP
from mbcasadi.control.limits.joint_limits import limited_joints_of
from robots.ground import Array


def beyond_stops(model: mujoco.MjModel, law: InverseDynamicsQP, q: Array) -> Array:
    """Return by how much a joint that a law limits is beyond a stop, rad or m, of poses (n, nq)."""
    if law.joint_limits is None:
        return np.zeros(len(q))
    joints = [model.joint(name) for name in limited_joints_of(law, law.joint_limits).names]
    angles = q[:, [int(joint.qposadr[0]) for joint in joints]]
    low, high = np.array([joint.range for joint in joints]).T
    return np.maximum(low - angles, angles - high).max(axis=1)
