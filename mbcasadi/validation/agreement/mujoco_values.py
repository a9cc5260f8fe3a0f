"""MuJoCo's own value of each quantity of a `System`, at one state.

Independent of our equations. Contacts, limits and friction are switched off in a copy of
the model: they are forces of MuJoCo's solver and change none of these quantities.
"""

import copy
from collections.abc import Callable

import mujoco
import numpy as np

from mbcasadi.mjcf.compat import actuator_slots, has_gains_in_bias
from mbcasadi.mjcf.pid import pulls_by_control, without_memory
from mbcasadi.validation.agreement.manifold import Array, integrate
from mbcasadi.validation.agreement.samples import Sample

# Of the seven-point difference, in sizes of the coordinates: rounding 1e-14, truncation 1e-12 / 140
STEP = 1e-2
STEP_WEIGHTS = {
    -3.0: -1.0 / 60.0,
    -2.0: 3.0 / 20.0,
    -1.0: -3.0 / 4.0,
    1.0: 3.0 / 4.0,
    2.0: -3.0 / 20.0,
    3.0: 1.0 / 60.0,
}


def velocity_map(s: Sample) -> Array:
    """Return N, (nq, nv), by differences of MuJoCo's own step."""
    N = np.zeros((s.model.nq, s.model.nv))
    for k, direction in enumerate(np.eye(s.model.nv)):
        N[:, k] = directional_derivative(s, direction, lambda q: q)
    return N


def directional_derivative(s: Sample, direction: Array, value: Callable[[Array], Array]) -> Array:
    """Return d value(q ⊕ τ direction) / dτ at τ = 0 by a seven-point difference."""
    speed = float(np.linalg.norm(direction / s.sizes.coordinates))
    step = STEP / (speed if speed > 0 else 1.0)
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
    # A large bias would leave no digits of a small gain; a pid servo's gains are in its bias.
    model.actuator_biasprm[~has_gains_in_bias(model)] = 0.0
    data = mujoco.MjData(model)
    data.qpos, data.qvel = s.q, s.v
    mujoco.mj_forward(model, data)
    rest = np.array(data.qfrc_actuator)
    columns = []
    for (field, index), size in zip(
        control_variables(model), s.sizes.actuators.inputs, strict=True
    ):
        getattr(data, field)[index] = size
        mujoco.mj_fwdActuation(model, data)
        columns.append((data.qfrc_actuator - rest) / size)
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
    """Return a copy without any range of controls and actuator forces.

    Its activations pull as they are, `actearly` or not: u stands for the activation that pulls.
    """
    free = copy.copy(model)
    free.actuator_actearly[:] = 0
    for name in (
        "actuator_ctrllimited",
        "actuator_forcelimited",
        "actuator_actlimited",
        "jnt_actfrclimited",
        "tendon_actfrclimited",
    ):
        getattr(free, name)[:] = 0
    without_memory(free)
    return free


def control_variables(model: mujoco.MjModel) -> list[tuple[str, int]]:
    """Return (`ctrl` or `act`, index) of the variable through which each control acts."""
    variables = [("ctrl", i) for i in range(model.nu)]
    for actuator, slots in enumerate(actuator_slots(model)):
        if model.actuator_actadr[actuator] >= 0:
            if pulls_by_control(model, actuator):
                continue
            last = int(model.actuator_actadr[actuator] + model.actuator_actnum[actuator]) - 1
            variables[slots.ctrl] = ("act", last)
    return variables
