"""MuJoCo's own value of each quantity of a `System`, at one state.

Independent of our equations. Contacts, limits and friction are switched off in a copy of
the model: they are forces of MuJoCo's solver and change none of these quantities.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.mjcf.compat import actuator_slots

Array = NDArray[np.float64]

STEP = 1e-2  # of the seven-point difference: rounding 1e-14, truncation 1e-12 / 140
STEP_WEIGHTS = {
    -3.0: -1.0 / 60.0,
    -2.0: 3.0 / 20.0,
    -1.0: -3.0 / 4.0,
    1.0: 3.0 / 4.0,
    2.0: -3.0 / 20.0,
    3.0: 1.0 / 60.0,
}
SMALL_CONTROL = 2.0**-7  # keeps the set-point of a rotational servo within one turn
CTRL_MARGIN = 0.5  # controls are drawn from their range, widened by this fraction on each side
EQUALITY_ROWS = {
    int(mujoco.mjtEq.mjEQ_CONNECT): 3,
    int(mujoco.mjtEq.mjEQ_WELD): 6,
    int(mujoco.mjtEq.mjEQ_JOINT): 1,
    int(mujoco.mjtEq.mjEQ_TENDON): 1,
}


class Sample(NamedTuple):
    """One random state, a second configuration, and MuJoCo's data at the state."""

    model: mujoco.MjModel
    data: mujoco.MjData
    q: Array
    v: Array
    u: Array
    act: Array
    q1: Array


def smooth_copy(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy without contacts, limits, friction and sleep, with dense Jacobians."""
    smooth = copy.copy(model)
    Bit = mujoco.mjtDisableBit
    smooth.opt.disableflags |= int(
        Bit.mjDSBL_CONTACT.value | Bit.mjDSBL_LIMIT.value | Bit.mjDSBL_FRICTIONLOSS.value
    )
    smooth.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP.value)
    smooth.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    return smooth


def random_sample(model: mujoco.MjModel, rng: np.random.Generator) -> Sample:
    """Draw a state anywhere in the configuration space, controls in and out of their ranges."""
    q = integrate(model, model.qpos0, rng.normal(size=model.nv))
    q1 = integrate(model, model.qpos0, rng.normal(size=model.nv))
    low, high = model.actuator_ctrlrange.T
    margin = CTRL_MARGIN * np.abs(high - low)
    within = rng.uniform(low - margin, high + margin)
    u = np.where(model.actuator_ctrllimited, within, rng.normal(size=model.nu))
    sample = Sample(
        model=model,
        data=mujoco.MjData(model),
        q=q,
        v=rng.normal(size=model.nv),
        u=u,
        act=rng.normal(size=model.na),
        q1=q1,
    )
    data = sample.data
    data.qpos, data.qvel, data.ctrl, data.act = sample.q, sample.v, sample.u, sample.act
    mujoco.mj_forward(model, data)
    return sample


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


def inertia(s: Sample) -> Array:
    """Return M, (nv, nv)."""
    M = np.zeros((s.model.nv, s.model.nv))
    mujoco.mj_fullM(s.model, s.data, M)
    return M


def velocity_map(s: Sample) -> Array:
    """Return N, (nq, nv), by differences of MuJoCo's own step."""
    N = np.zeros((s.model.nq, s.model.nv))
    for k, direction in enumerate(np.eye(s.model.nv)):
        N[:, k] = directional_derivative(s, direction, lambda q: q)
    return N


def directional_derivative(s: Sample, direction: Array, value: Callable[[Array], Array]) -> Array:
    """Return d value(q ⊕ τ direction) / dτ at τ = 0 by a seven-point difference."""
    step = STEP / max(1.0, float(np.linalg.norm(direction)))
    weighted = [
        weight * value(integrate(s.model, s.q, step * place * direction))
        for place, weight in STEP_WEIGHTS.items()
    ]
    return np.asarray(sum(weighted) / step)


def gravity_force(s: Sample) -> Array:
    """Return g, (nv,): the bias force at zero velocity."""
    data = mujoco.MjData(s.model)
    data.qpos = s.q
    mujoco.mj_forward(s.model, data)
    return np.array(data.qfrc_bias)


def kinetic_energy(s: Sample) -> Array:
    """Return T, J."""
    mujoco.mj_energyVel(s.model, s.data)
    return np.array([s.data.energy[1]])


def actuation(s: Sample) -> Array:
    """Return B, (nv, nu): what each control, or its activation, adds to the actuator force."""
    model = unlimited_copy(s.model)
    data = mujoco.MjData(model)
    data.qpos, data.qvel = s.q, s.v
    mujoco.mj_forward(model, data)
    bias = np.array(data.qfrc_actuator)
    columns = []
    for field, index in control_variables(model):
        getattr(data, field)[index] = SMALL_CONTROL
        mujoco.mj_fwdActuation(model, data)
        columns.append((data.qfrc_actuator - bias) / SMALL_CONTROL)
        getattr(data, field)[index] = 0.0
    return np.stack(columns, axis=1)


def actuator_bias(s: Sample) -> Array:
    """Return f_0: the actuator force without controls, activations and ranges."""
    model = unlimited_copy(s.model)
    data = mujoco.MjData(model)
    data.qpos, data.qvel = s.q, s.v
    mujoco.mj_forward(model, data)
    return np.array(data.qfrc_actuator)


def unlimited_copy(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy without any range of controls and actuator forces."""
    free = copy.copy(model)
    for name in (
        "actuator_ctrllimited",
        "actuator_forcelimited",
        "jnt_actfrclimited",
        "tendon_actfrclimited",
    ):
        getattr(free, name)[:] = 0
    return free


def control_variables(model: mujoco.MjModel) -> list[tuple[str, int]]:
    """Return (`ctrl` or `act`, index) of the variable through which each control acts."""
    variables = [("ctrl", i) for i in range(model.nu)]
    for actuator, slots in enumerate(actuator_slots(model)):
        if model.actuator_actadr[actuator] >= 0:
            variables[slots.ctrl] = ("act", int(model.actuator_actadr[actuator]))
    return variables


def active_equalities(model: mujoco.MjModel) -> list[int]:
    """Return the ids of the equality constraints that have rows."""
    return [int(i) for i in np.flatnonzero(model.eq_active0)]


def constraint(s: Sample) -> Array:
    """Return phi; NaN where MuJoCo drops a constraint whose Jacobian vanishes."""
    blocks = []
    for i in active_equalities(s.model):
        rows = _rows(s.data, i)
        size = EQUALITY_ROWS[int(s.model.eq_type[i])]
        blocks.append(s.data.efc_pos[rows] if rows.size else np.full(size, np.nan))
    return np.concatenate(blocks)


def constraint_jacobian(s: Sample) -> Array:
    """Return A; zero where MuJoCo drops a constraint."""
    return _jacobian(s.model, s.data)


def constraint_bias(s: Sample) -> Array:
    """Return c = Ȧ v by differences of A v along the motion."""
    data = mujoco.MjData(s.model)

    def velocity(q: Array) -> Array:
        data.qpos = q
        mujoco.mj_fwdPosition(s.model, data)
        return np.asarray(_jacobian(s.model, data) @ s.v)

    return directional_derivative(s, s.v, velocity)


def _jacobian(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    # the buffer is larger where MuJoCo has dropped rows
    J = data.efc_J[: data.nefc * model.nv].reshape(data.nefc, model.nv)
    blocks = []
    for i in active_equalities(model):
        rows = _rows(data, i)
        size = EQUALITY_ROWS[int(model.eq_type[i])]
        blocks.append(J[rows] if rows.size else np.zeros((size, model.nv)))
    return np.concatenate(blocks)


def _rows(data: mujoco.MjData, equality: int) -> NDArray[np.int64]:
    kind = int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    return np.flatnonzero((data.efc_type == kind) & (data.efc_id == equality))
