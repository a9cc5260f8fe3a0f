"""Numbers of MuJoCo's soft rows: what `solref` and `solimp` mean.

A row with the violation r and its rate w has the force `f = -(a + b w + k r) / R`, within its
bounds, a the acceleration along the row and `R = (1 - d)/d A` with the impedance d and MuJoCo's
estimate A of the inverse inertia of the row (`diagApprox`). Dry friction has k = 0: where
nothing accelerates it is a damper of the slope b/R, up to the loss.
"""

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

IMPEDANCES = (1e-4, 0.9999)
"""Within which MuJoCo keeps impedances."""

MIN_WIDTH = 1e-15
"""MuJoCo's `mjMINVAL`."""

SAFE_STEPS = 2.0
"""Time steps that a time constant is at least, unless the flag `refsafe` is off."""


def impedance_limits(solimp: Array) -> tuple[float, float]:
    """Return the impedance without a violation, and beyond the width; their mean without one."""
    least, most = np.clip(solimp[:2], *IMPEDANCES)
    if solimp[2] <= MIN_WIDTH:
        return float(least + most) / 2, float(most)
    return float(least), float(most)


def row_damping(model: mujoco.MjModel, solref: Array, solimp: Array) -> float:
    """Return b, 1/s, of a soft row."""
    most = impedance_limits(solimp)[1]
    if solref[0] <= 0:
        return float(-solref[1]) / most
    safe = not model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_REFSAFE)
    least = SAFE_STEPS * model.opt.timestep if safe else 0.0
    return 2.0 / (most * max(float(solref[0]), least))


def friction_slope(model: mujoco.MjModel, dof: int) -> float:
    """Return b/R of a joint's dry friction, N s/m or N m s/rad; infinite on what has no inertia.

    Args:
        model: the compiled model.
        dof: of a slide or hinge.
    """
    solref, solimp = model.dof_solref[dof], model.dof_solimp[dof]
    least = impedance_limits(solimp)[0]
    softness = (1 - least) / least * float(model.dof_invweight0[dof])
    damping = row_damping(model, solref, solimp)
    return damping / softness if softness > 0 else np.inf
