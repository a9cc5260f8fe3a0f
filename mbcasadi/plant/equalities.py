"""Equality constraints of a plant: closing them at the start, their gap, switching them."""

from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import SimulationError, UnknownNameError
from mbcasadi.plant import api

Array = NDArray[np.float64]

# Newton's method converges quadratically: a state that needs more steps is far from the manifold.
CLOSURE_STEPS = 50
CLOSURE_TOL = 1e-10  # m or rad
# Singular values below this share of the largest count as redundant rows.
ROW_CUTOFF = 1e-8


def close_equalities(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Move q and v onto the equality constraints; rows may be redundant.

    Newton's method on q with MuJoCo's own residual and Jacobian, then `v -= J⁺ J v`.

    Raises:
        SimulationError: no closed state is near q.
    """
    for _ in range(CLOSURE_STEPS):
        mujoco.mj_forward(model, data)
        J = api.equality_jacobian(model, data)
        residual = np.array(data.efc_pos[: data.ne])
        if np.abs(residual).max(initial=0.0) < CLOSURE_TOL:
            break
        step = np.linalg.pinv(J, rcond=ROW_CUTOFF) @ residual
        mujoco.mj_integratePos(model, data.qpos, -step, 1.0)
    else:
        raise SimulationError(
            f"the equality constraints are violated by {np.abs(residual).max():.3g} at the "
            "given q, and Newton's method finds no closed state nearby; start from a closed state"
        )
    data.qvel[:] -= np.linalg.pinv(J, rcond=ROW_CUTOFF) @ (J @ data.qvel)


def closure_gap(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return the worst distance between points that a connect or weld holds together, m."""
    kinds = {int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)}
    rows = np.array(data.efc_id[: data.ne])
    worst = 0.0
    for equality in np.unique(rows):
        if int(model.eq_type[equality]) in kinds:
            gap = data.efc_pos[np.flatnonzero(rows == equality)[:3]]
            worst = max(worst, float(np.linalg.norm(gap)))
    return worst


def switch_equalities(
    model: mujoco.MjModel, data: mujoco.MjData, active: Mapping[str, bool]
) -> None:
    """Switch equality constraints of a running simulation on or off, by name.

    Raises:
        UnknownNameError: the message lists the valid names.
    """
    names = [model.equality(i).name for i in range(model.neq)]
    for name, on in active.items():
        if name not in names:
            valid = ", ".join(repr(each) for each in names) or "none"
            raise UnknownNameError(f"unknown equality {name!r}; this model has: {valid}")
        data.eq_active[names.index(name)] = on
