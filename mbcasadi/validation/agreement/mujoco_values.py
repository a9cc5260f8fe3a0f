"""MuJoCo's own value of each quantity of a `System`, at one state.

Independent of our equations. Contacts, limits and friction are switched off in a copy of
the model: they are forces of MuJoCo's solver and change none of these quantities.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import mujoco
import numpy as np

from mbcasadi.mjcf.compat import actuator_slots, has_gains_in_bias
from mbcasadi.mjcf.pid import pulls_by_control, without_memory
from mbcasadi.validation.agreement.manifold import (
    Array,
    equality_jacobian,
    integrate,
    rows_of_tendons,
)
from mbcasadi.validation.agreement.sizes import QuantitySizes

RUNNING = 1.0  # s; at time 0 the plugin `mujoco.pid` has no set-point yet that its slew rate holds
CTRL_MARGIN = 0.5  # controls are drawn from their range, widened by this fraction on each side

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

SMOOTH = 1e-12
"""Largest error of differences of smooth tendons' lengths, relative to the fastest of them: a jump
that is not seen at that size moves the bias by less than a hundred times as much."""

# `mjOBJ_BODY` is the inertial frame in velocities; `mjOBJ_XBODY` is the body frame
FRAMES = {"site": mujoco.mjtObj.mjOBJ_SITE, "body": mujoco.mjtObj.mjOBJ_XBODY}
IN_WORLD_AXES = 0
OBJECTS = {"site": mujoco.mjtObj.mjOBJ_SITE, "body": mujoco.mjtObj.mjOBJ_BODY}


class Draw(NamedTuple):
    """A state, a second configuration and a step, in the coordinates of one side."""

    q: Array
    v: Array
    u: Array
    act: Array
    q0: Array
    q1: Array
    dv: Array


@dataclass(frozen=True, eq=False)
class MujocoSample:
    """MuJoCo's data at a draw."""

    model: mujoco.MjModel
    data: mujoco.MjData
    sizes: QuantitySizes
    q: Array
    v: Array
    u: Array
    act: Array
    q0: Array
    q1: Array
    dv: Array

    @cached_property
    def weightless(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """The model without gravity, and its data without accelerations of joints."""
        model = copy.copy(self.model)
        model.opt.gravity = 0.0
        data = mujoco.MjData(model)
        data.qpos, data.qvel = self.q, self.v
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_rnePostConstraint(model, data)
        return model, data


def random_draw(model: mujoco.MjModel, sizes: QuantitySizes, rng: np.random.Generator) -> Draw:
    """Return a state anywhere in the configuration space, controls in and out of their ranges.

    Args:
        model: without forces of MuJoCo's solver.
        sizes: of the model.
        rng: of the random numbers.
    """
    steps = sizes.coordinates * rng.normal(size=(3, model.nv))
    q, q1 = (integrate(model, model.qpos0, step) for step in steps[:2])
    low, high = model.actuator_ctrlrange.T
    margin = CTRL_MARGIN * np.abs(high - low)
    within = rng.uniform(low - margin, high + margin)
    free = sizes.actuators.controls * rng.normal(size=model.nu)
    v = sizes.rate * sizes.coordinates * rng.normal(size=model.nv)
    act = sizes.actuators.activations * rng.normal(size=model.na)
    u = np.where(model.actuator_ctrllimited, within, free)
    return Draw(q, v, u, act, q, q1, steps[2])


def sample_at(model: mujoco.MjModel, sizes: QuantitySizes, at: Draw) -> MujocoSample:
    """Return MuJoCo's data at a draw."""
    data = mujoco.MjData(model)
    data.time = RUNNING
    data.qpos, data.qvel, data.ctrl, data.act = at.q, at.v, at.u, at.act
    mujoco.mj_forward(model, data)
    return MujocoSample(model, data, sizes, *at)


def velocity_map(s: MujocoSample) -> Array:
    """Return N, (nq, nv), by differences of MuJoCo's own step."""
    columns = [directional_derivative(s, direction, lambda q: q) for direction in np.eye(s.v.size)]
    return np.array(columns).reshape(s.v.size, s.q.size).T


def directional_derivative(
    s: MujocoSample, direction: Array, value: Callable[[Array], Array]
) -> Array:
    """Return d value(q ⊕ τ direction) / dτ at τ = 0 by a seven-point difference."""
    speed = float(np.linalg.norm(direction / s.sizes.coordinates))
    step = STEP / (speed if speed > 0 else 1.0)
    weighted = [
        weight * value(integrate(s.model, s.q, step * place * direction))
        for place, weight in STEP_WEIGHTS.items()
    ]
    return np.asarray(sum(weighted) / step)


def gravity_force(s: MujocoSample) -> Array:
    """Return g, (nv,): the bias force at zero velocity."""
    return np.array(_data_at(s.model, s.q, np.zeros(s.v.size)).qfrc_bias)


def kinetic_energy(s: MujocoSample) -> Array:
    """Return T, J."""
    mujoco.mj_energyVel(s.model, s.data)
    return np.array([s.data.energy[1]])


def potential_energy(s: MujocoSample) -> Array:
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
        joints = _joints_above(s.model, int(i))
        if joints and not np.any(s.model.jnt_actgravcomp[joints]):
            weight = s.model.body_gravcomp[i] * s.model.body_mass[i] * s.model.opt.gravity
            energy += float(weight @ s.data.xipos[i])
    return np.array([energy])


def _joints_above(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the ids of the joints that move a body."""
    joints: list[int] = []
    while body:
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        joints += range(first, first + count)
        body = int(model.body_parentid[body])
    return joints


def actuation(s: MujocoSample) -> Array:
    """Return B, (nv, nu): what each control, or its activation, adds to the actuator force."""
    model = _unlimited_copy(s.model)
    # A large bias would leave no digits of a small gain; a pid servo's gains are in its bias.
    model.actuator_biasprm[~has_gains_in_bias(model)] = 0.0
    data = _data_at(model, s.q, s.v)
    rest = np.array(data.qfrc_actuator)
    columns = []
    for (field, index), size in zip(
        _control_variables(model), s.sizes.actuators.inputs, strict=True
    ):
        getattr(data, field)[index] = size
        mujoco.mj_fwdActuation(model, data)
        columns.append((data.qfrc_actuator - rest) / size)
        getattr(data, field)[index] = 0.0
    return np.stack(columns, axis=1)


def actuator_bias(s: MujocoSample) -> Array:
    """Return f_0: the actuator force without controls, activations and ranges."""
    return np.array(_data_at(_unlimited_copy(s.model), s.q, s.v).qfrc_actuator)


def _data_at(model: mujoco.MjModel, q: Array, v: Array) -> mujoco.MjData:
    """Return MuJoCo's data at a state, without controls and activations."""
    data = mujoco.MjData(model)
    data.qpos, data.qvel = q, v
    mujoco.mj_forward(model, data)
    return data


def _unlimited_copy(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy without any range of controls and actuator forces.

    Its activations pull as they are, `actearly` or not: u stands for the activation that pulls.
    """
    free = copy.copy(model)
    free.actuator_actearly[:] = 0
    for name in ("actuator_ctrl", "actuator_force", "actuator_act", "jnt_actfrc", "tendon_actfrc"):
        getattr(free, f"{name}limited")[:] = 0
    without_memory(free)
    return free


def _control_variables(model: mujoco.MjModel) -> list[tuple[str, int]]:
    """Return (`ctrl` or `act`, index) of the variable through which each control acts."""
    variables = [("ctrl", i) for i in range(model.nu)]
    for actuator, slots in enumerate(actuator_slots(model)):
        if model.actuator_actadr[actuator] >= 0 and not pulls_by_control(model, actuator):
            last = int(model.actuator_actadr[actuator] + model.actuator_actnum[actuator]) - 1
            variables[slots.ctrl] = ("act", last)
    return variables


def constraint_bias(s: MujocoSample) -> Array:
    """Return c = Ȧ v by differences of A v along the motion.

    NaN for couplings of tendons where no difference has a meaning: where a tendon starts or ceases
    to wrap between the differences, or takes the other side, so that the rate of its length jumps,
    or where one passes inside a geom: the error of MuJoCo's own iteration there, up to 1e-6, jumps.
    """
    data = mujoco.MjData(s.model)
    inside: list[bool] = []

    def values(q: Array) -> Array:
        data.qpos = q
        mujoco.mj_fwdPosition(s.model, data)
        inside.append(_passes_inside(data))
        return np.concatenate([equality_jacobian(s.model, data) @ s.v, data.ten_length])

    rows = rows_of_tendons(s.model)
    bias, speeds = np.split(directional_derivative(s, s.v, values), [rows.size])
    jump = np.abs(speeds - s.data.ten_velocity).max(initial=0.0)
    if any(inside) or jump > SMOOTH * np.abs(s.data.ten_velocity).max(initial=0.0):
        bias[rows] = np.nan
    return bias


def _passes_inside(data: mujoco.MjData) -> bool:
    """Return whether a tendon touches a geom at one point, as MuJoCo lets it inside only."""
    count = int(data.ten_wrapnum.sum())
    geoms, points = data.wrap_obj.ravel()[:count], data.wrap_xpos.reshape(-1, 3)[:count]
    pairs = (geoms[1:] >= 0) & (geoms[1:] == geoms[:-1])
    return bool(np.any(pairs & np.all(points[1:] == points[:-1], axis=1)))


def frame_pose(s: MujocoSample, kind: str, i: int) -> Array:
    """Return (3, 4): rotation beside origin."""
    field = "site_x" if kind == "site" else "x"
    R, p = getattr(s.data, f"{field}mat")[i], getattr(s.data, f"{field}pos")[i]
    return np.column_stack([R.reshape(3, 3), p])


def frame_jacobian(s: MujocoSample, kind: str, i: int) -> Array:
    """Return (6, nv): linear above angular."""
    J = np.zeros((6, s.model.nv))
    function = mujoco.mj_jacSite if kind == "site" else mujoco.mj_jacBody
    function(s.model, s.data, J[:3], J[3:], i)
    return J


def frame_velocity(s: MujocoSample, kind: str, i: int) -> Array:
    """Return (6,): linear above angular, world axes."""
    angular_first = np.zeros(6)
    mujoco.mj_objectVelocity(s.model, s.data, FRAMES[kind], i, angular_first, IN_WORLD_AXES)
    return np.roll(angular_first, 3)


def frame_bias(s: MujocoSample, kind: str, i: int) -> Array:
    """Return (6,): J̇ v, the acceleration at zero joint acceleration, without gravity.

    `mj_jacDot` is no reference: it is wrong for bodies with a slide joint before a hinge.
    """
    model, data = s.weightless
    angular_first = np.zeros(6)
    mujoco.mj_objectAcceleration(model, data, FRAMES[kind], i, angular_first, IN_WORLD_AXES)
    return np.roll(angular_first, 3)
