"""Gaps that weight alone opens in the loops of a plant, by the softness of its constraints.

At rest, with the motors held, rows of constraints carry what the other joints do not: with their
bias h and springs s, ``Jᵀ f = h - s`` in the rows of dofs that no actuator moves. MuJoCo's rows
give way by ``r = R f / (K d)``, with their regularisation ``R = (1 - d) / d A``, their stiffness K
and their impedance d, which grows with r.
"""

import copy

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.plant.equalities import HOLD_POINTS

Array = NDArray[np.float64]

HALVINGS = 50  # of the interval that has a gap
ROW_CUTOFF = 1e-3
"""Share of the largest singular value below which rows carry nothing, as those across a plane."""

FRICTION = (
    int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF),
    int(mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON),
)


def static_gap(model: mujoco.MjModel, q: ArrayLike) -> float:
    """Return the largest gap of connects and welds under weight alone in a pose, m.

    Args:
        model: of the plant.
        q: (nq,) pose; what touches the ground in it carries the robot.
    """
    own = copy.copy(model)
    own.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(own)
    data.qpos = np.asarray(q, dtype=float)
    mujoco.mj_forward(own, data)
    force = _row_forces(own, data)
    gaps = [0.0]
    for equality in np.unique(data.efc_id[: data.ne]):
        if int(own.eq_type[equality]) in HOLD_POINTS:
            rows = np.flatnonzero(data.efc_id[: data.ne] == equality)[:3]
            gaps.append(_gap(own, data, int(equality), rows, force[rows]))
    return max(gaps)


def _row_forces(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return the (nefc,) forces of all rows that carry the weight, the least ones that do."""
    held = np.isin(np.arange(model.nv), np.array(data.moment_colind))
    load = np.array(data.qfrc_bias - data.qfrc_passive)
    J = np.array(data.efc_J).reshape(data.nefc, model.nv)
    J[np.isin(data.efc_type, FRICTION)] = 0.0
    force, *_ = np.linalg.lstsq(J[:, ~held].T, load[~held], rcond=ROW_CUTOFF)
    return np.asarray(force)


def _gap(
    model: mujoco.MjModel, data: mujoco.MjData, equality: int, rows: NDArray[np.int64], force: Array
) -> float:
    """Return how far an equality opens under the forces of its rows, m."""
    stiffness, here = (float(data.efc_KBIP[rows[0], k]) for k in (0, 2))
    solimp, A = np.array(model.eq_solimp[equality]), np.array(data.efc_R)[rows] * here / (1 - here)
    load = float(np.linalg.norm(A * force))
    if stiffness <= 0:  # damped rows open for ever
        return 0.0

    def opening(d: float) -> float:
        return (1 - d) / d * load / (stiffness * d)

    narrow, wide = sorted((opening(solimp[0]), opening(solimp[1])))
    for _ in range(HALVINGS):  # a wider gap has a stiffer row, which opens less
        middle = 0.5 * (narrow + wide)
        opens_more = opening(impedance(solimp, middle)) > middle
        narrow, wide = (middle, wide) if opens_more else (narrow, middle)
    return float(0.5 * (narrow + wide))


def impedance(solimp: Array, r: float) -> float:
    """Return the impedance d(r) of a constraint, as MuJoCo's `solimp` defines it."""
    low, high, width, middle, power = solimp
    x = min(1.0, r / width) if width > 0 else 1.0
    if power == 1 or x in (0.0, 1.0):
        y = x
    elif x <= middle:
        y = x**power / middle ** (power - 1)
    else:
        y = 1 - (1 - x) ** power / (1 - middle) ** (power - 1)
    return float(low + y * (high - low))
