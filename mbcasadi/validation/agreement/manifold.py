"""MuJoCo's own sum and difference of configurations, and the copy of a model that is compared."""

import copy

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def smooth_copy(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy without contacts, limits, friction and sleep, with dense Jacobians.

    Contacts, limits and friction are forces of MuJoCo's solver: they change no member. A delayed
    control acts at once: members take the control that acts.
    """
    smooth = copy.copy(model)
    Bit = mujoco.mjtDisableBit
    smooth.opt.disableflags |= int(
        Bit.mjDSBL_CONTACT.value | Bit.mjDSBL_LIMIT.value | Bit.mjDSBL_FRICTIONLOSS.value
    )
    smooth.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP.value)
    smooth.actuator_delay[:] = 0.0
    smooth.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    return smooth


def integrate(model: mujoco.MjModel, q: Array, dv: Array) -> Array:
    """Return q ⊕ dv."""
    result = np.array(q)
    mujoco.mj_integratePos(model, result, dv, 1.0)
    return result


def difference(model: mujoco.MjModel, q0: Array, q1: Array) -> Array:
    """Return dv with q1 = q0 ⊕ dv."""
    result = np.zeros(model.nv)
    mujoco.mj_differentiatePos(model, result, 1.0, q0, q1)
    return result


def inertia(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return M, (nv, nv)."""
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M
