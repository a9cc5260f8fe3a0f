"""Softness of what is no constraint here: dry friction of joints, contacts."""

import mujoco
import numpy as np

from mbcasadi.description.softness import soft_row

SAFE_STEPS = 2.0
"""Time steps that a time constant is at least, unless the flag `refsafe` is off."""


def least_time(model: mujoco.MjModel) -> float:
    """Return the least time constant of soft rows, s."""
    safe = not model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_REFSAFE)
    return SAFE_STEPS * float(model.opt.timestep) if safe else 0.0


def friction_slope(model: mujoco.MjModel, dof: int) -> float:
    """Return b/R of a joint's dry friction, N s/m or N m s/rad; infinite on what has no inertia.

    Args:
        model: the compiled model.
        dof: of a slide or hinge.
    """
    row = soft_row(
        np.array(model.dof_solref[dof]), np.array(model.dof_solimp[dof]), least_time(model)
    )
    regularisation = row.softness() * float(model.dof_invweight0[dof])
    return row.damping / regularisation if regularisation > 0 else np.inf
