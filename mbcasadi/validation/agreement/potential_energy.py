"""MuJoCo's potential energy, with the gravity compensation that it leaves out."""

import mujoco
import numpy as np

from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.samples import Sample


def potential_energy(s: Sample) -> Array:
    """Return V, J, with the gravity compensation that MuJoCo's own value omits.

    The compensation of a body counts where it is a passive force on all joints that move it; what
    joints route to their actuators is no potential.
    """
    mujoco.mj_energyPos(s.model, s.data)
    energy = float(s.data.energy[0])
    Bit = mujoco.mjtDisableBit
    springs_and_dampers = int(Bit.mjDSBL_SPRING.value | Bit.mjDSBL_DAMPER.value)
    off = s.model.opt.disableflags & springs_and_dampers == springs_and_dampers
    if off or s.model.opt.disableflags & int(Bit.mjDSBL_GRAVITY.value):
        return np.array([energy])
    for i in np.flatnonzero(s.model.body_gravcomp):
        joints = joints_above(s.model, int(i))
        if joints and not np.any(s.model.jnt_actgravcomp[joints]):
            weight = s.model.body_gravcomp[i] * s.model.body_mass[i] * s.model.opt.gravity
            energy += float(weight @ s.data.xipos[i])
    return np.array([energy])


def joints_above(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the ids of the joints that move a body."""
    joints: list[int] = []
    while body:
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        joints += range(first, first + count)
        body = int(model.body_parentid[body])
    return joints
