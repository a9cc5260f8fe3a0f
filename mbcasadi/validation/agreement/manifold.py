"""MuJoCo's configurations, and the rows of its equality constraints with those that it drops."""

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


EQUALITY_ROWS = {
    int(mujoco.mjtEq.mjEQ_CONNECT): 3,
    int(mujoco.mjtEq.mjEQ_WELD): 6,
    int(mujoco.mjtEq.mjEQ_JOINT): 1,
    int(mujoco.mjtEq.mjEQ_TENDON): 1,
}


def equality_residual(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return phi (nc,); NaN where MuJoCo drops a constraint whose Jacobian vanishes."""
    blocks = []
    for i in active_equalities(model):
        rows = _rows(data, i)
        size = EQUALITY_ROWS[int(model.eq_type[i])]
        blocks.append(data.efc_pos[rows] if rows.size else np.full(size, np.nan))
    return np.concatenate(blocks)


def equality_jacobian(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return A (nc, nv); zero where MuJoCo drops a constraint."""
    # the buffer is larger where MuJoCo has dropped rows
    J = data.efc_J[: data.nefc * model.nv].reshape(data.nefc, model.nv)
    blocks = []
    for i in active_equalities(model):
        rows = _rows(data, i)
        size = EQUALITY_ROWS[int(model.eq_type[i])]
        blocks.append(J[rows] if rows.size else np.zeros((size, model.nv)))
    return np.concatenate(blocks)


def rows_of_tendons(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Return (nc,) whether a row couples tendons."""
    kinds = [int(model.eq_type[i]) for i in active_equalities(model)]
    of_tendons = np.array(kinds) == int(mujoco.mjtEq.mjEQ_TENDON)
    return np.repeat(of_tendons, [EQUALITY_ROWS[kind] for kind in kinds])


def active_equalities(model: mujoco.MjModel) -> list[int]:
    """Return the ids of the equality constraints that have rows."""
    return [int(i) for i in np.flatnonzero(model.eq_active0)]


def _rows(data: mujoco.MjData, equality: int) -> NDArray[np.int64]:
    kind = int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    return np.flatnonzero((data.efc_type == kind) & (data.efc_id == equality))
