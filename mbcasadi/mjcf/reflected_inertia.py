"""Armature and damping that actuators add to the joint or tendon that they drive.

MuJoCo reflects them through the gear onto the target: `gear² armature` on the diagonal of M,
`gear² damping` (and `gear²` times the polynomial's higher coefficients, of the *target's*
velocity) in the passive force. A ball or free joint gets `gear[0]²` on each degree of freedom.
"""

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.mjcf.compat import actuator_slots

Array = NDArray[np.float64]

DOFS = {
    int(mujoco.mjtJoint.mjJNT_FREE): 6,
    int(mujoco.mjtJoint.mjJNT_BALL): 3,
    int(mujoco.mjtJoint.mjJNT_SLIDE): 1,
    int(mujoco.mjtJoint.mjJNT_HINGE): 1,
}
ON_JOINTS = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))


@dataclass(frozen=True)
class ReflectedInertia:
    """Armature and damping added to joints, by degree of freedom, and to tendons, by id."""

    joint_armature: Array
    joint_damping: Array
    joint_damping_poly: Array
    tendon_armature: Array
    tendon_damping: Array
    tendon_damping_poly: Array


def reflected_inertia(model: mujoco.MjModel) -> ReflectedInertia:
    """Return the sum over the actuators of a model."""
    degree = model.actuator_dampingpoly.shape[1]
    total = ReflectedInertia(
        np.zeros(model.nv),
        np.zeros(model.nv),
        np.zeros((model.nv, degree)),
        np.zeros(model.ntendon),
        np.zeros(model.ntendon),
        np.zeros((model.ntendon, degree)),
    )
    for i, slots in enumerate(actuator_slots(model)):
        scale = model.actuator_gear[slots.output, 0] ** 2
        target, transmission = int(model.actuator_trnid[i, 0]), int(model.actuator_trntype[i])
        if transmission in ON_JOINTS:
            first = int(model.jnt_dofadr[target])
            rows = slice(first, first + DOFS[int(model.jnt_type[target])])
            total.joint_armature[rows] += scale * model.actuator_armature[i]
            total.joint_damping[rows] += scale * model.actuator_damping[i]
            total.joint_damping_poly[rows] += scale * model.actuator_dampingpoly[i]
        elif transmission == int(mujoco.mjtTrn.mjTRN_TENDON):
            total.tendon_armature[target] += scale * model.actuator_armature[i]
            total.tendon_damping[target] += scale * model.actuator_damping[i]
            total.tendon_damping_poly[target] += scale * model.actuator_dampingpoly[i]
    return total
