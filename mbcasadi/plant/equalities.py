"""Equality constraints of a plant: closing them at the start, their gap, switching them."""

import math
from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import SimulationError
from mbcasadi.plant import api
from mbcasadi.unknown_names import unknown_name

Array = NDArray[np.float64]

# Newton's method converges quadratically: a state that needs more steps is far from the manifold.
CLOSURE_STEPS = 50
CLOSURE_TOL = 1e-10  # rad, or share of the model's extent
# Singular values below this share of the largest count as redundant rows.
ROW_CUTOFF = 1e-8

SLIDE, FREE = int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_FREE)
HOLD_POINTS = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD))
"""Equalities whose first three rows are a distance between two points, m."""


def close_equalities(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Move q and v onto the equality constraints; rows may be redundant.

    Newton's method on q with MuJoCo's own residual and Jacobian, then `v -= J⁺ J v`; lengths count
    as shares of the model's extent.

    Raises:
        SimulationError: no closed state is near q.
    """
    size = _coordinate_sizes(model)
    for _ in range(CLOSURE_STEPS):
        mujoco.mj_forward(model, data)
        rows = _row_sizes(model, data)
        J = api.equality_jacobian(model, data) * size / rows[:, None]
        residual = np.array(data.efc_pos[: data.ne]) / rows
        if np.abs(residual).max(initial=0.0) < CLOSURE_TOL:
            break
        step = size * (np.linalg.pinv(J, rcond=ROW_CUTOFF) @ residual)
        mujoco.mj_integratePos(model, data.qpos, -step, 1.0)
    else:
        raise SimulationError(
            f"the equality constraints are violated by {np.abs(residual * rows).max():.3g} at the "
            "given q, and Newton's method finds no closed state nearby; start from a closed state"
        )
    speed = data.qvel / size
    data.qvel[:] -= size * (np.linalg.pinv(J, rcond=ROW_CUTOFF) @ (J @ speed))


def _coordinate_sizes(model: mujoco.MjModel) -> Array:
    """Return (nv,) the extent of the model for translations, and 1 rad."""
    size = np.ones(model.nv)
    for kind, dof in zip(model.jnt_type, model.jnt_dofadr, strict=True):
        count = {SLIDE: 1, FREE: 3}.get(int(kind), 0)
        size[dof : dof + count] = model.stat.extent
    return size


def _row_sizes(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return (ne,) the extent of the model for rows of lengths, and 1 for those of angles."""
    rows = np.array(data.efc_id[: data.ne])
    size = np.full(rows.size, float(model.stat.extent))
    for equality in np.unique(rows):
        places = np.flatnonzero(rows == equality)
        kind, joint = int(model.eq_type[equality]), int(model.eq_obj1id[equality])
        if kind == int(mujoco.mjtEq.mjEQ_WELD):
            size[places[3:]] = 1.0
        elif kind == int(mujoco.mjtEq.mjEQ_JOINT) and int(model.jnt_type[joint]) != SLIDE:
            size[places] = 1.0
    return size


def row_forces(model: mujoco.MjModel, data: mujoco.MjData, name: str) -> Array:
    """Return the multipliers of an equality constraint's rows, none where it is off.

    Raises:
        UnknownNameError: the message lists the valid names.
    """
    own = data.efc_id[: data.ne] == find_equality(model, name)
    return np.array(data.efc_force[: data.ne][own])


def find_equality(model: mujoco.MjModel, name: str) -> int:
    """Return the id of an equality constraint.

    Raises:
        UnknownNameError: the message lists the valid names.
    """
    names = [model.equality(i).name for i in range(model.neq)]
    if name not in names:
        raise unknown_name("equality", name, names)
    return names.index(name)


def closure_gap(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return the worst distance between points that a connect or weld holds together, m."""
    worst, last = 0.0, -1
    position = data.efc_pos[: data.ne].tolist()  # called at every tick: lists are read faster
    for row, equality in enumerate(data.efc_id[: data.ne].tolist()):
        if equality != last and int(model.eq_type[equality]) in HOLD_POINTS:
            worst = max(worst, math.hypot(*position[row : row + 3]))
        last = equality
    return worst


def switch_equalities(
    model: mujoco.MjModel, data: mujoco.MjData, active: Mapping[str, bool]
) -> None:
    """Switch equality constraints of a running simulation on or off, by name.

    Raises:
        UnknownNameError: the message lists the valid names.
    """
    for name, on in active.items():
        data.eq_active[find_equality(model, name)] = on
