"""What an IMU of a plant measures over a tick: increments of angle and velocity by their time.

MuJoCo reads at the state before a step, and an acceleration without what implicit damping changes
in the step: the sum of its readings is not the motion. With rotation R and velocity v of the site
at both ends of a step h it is

    φ = Log(R_0ᵀ R_1),   rate = φ / h,   force = Exp(-φ/2) R_0ᵀ ((v_1 - v_0) / h - g)

as of a gyroscope and an accelerometer that sample much faster than the plant steps.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

GYRO, ACCELEROMETER = mujoco.mjtSensor.mjSENS_GYRO, mujoco.mjtSensor.mjSENS_ACCELEROMETER

State = tuple[Array, Array]
"""q (nq,) and v (nv,)."""


class _Motion(NamedTuple):
    quat: Array
    v: Array


def imu_kind(model: mujoco.MjModel, index: int) -> int | None:
    """Return whether a sensor is a gyroscope or an accelerometer; None for any other."""
    kind = int(model.sensor_type[index])
    return kind if kind in (int(GYRO), int(ACCELEROMETER)) else None


def increment(
    model: mujoco.MjModel, scratch: mujoco.MjData, states: Sequence[State], index: int
) -> Array:
    """Return the mean (3,) of a gyroscope, rad/s, or accelerometer, m/s², over time steps.

    Args:
        model: of the plant.
        scratch: data that is overwritten.
        states: at the start, and at the end of each step.
        index: of the sensor.
    """
    site, h = int(model.sensor_objid[index]), float(model.opt.timestep)
    off = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
    g = np.zeros(3) if off else np.array(model.opt.gravity)
    motions = [_motion(model, scratch, state, site) for state in states]
    total, turn, half, back = np.zeros(3), np.zeros(3), np.zeros(4), np.zeros(4)
    for first, last in itertools.pairwise(motions):
        mujoco.mju_subQuat(turn, last.quat, first.quat)
        if imu_kind(model, index) == int(GYRO):
            total += turn / h
            continue
        half[:] = first.quat
        mujoco.mju_quatIntegrate(half, turn, 0.5)
        mujoco.mju_negQuat(back, half)
        force = np.zeros(3)
        mujoco.mju_rotVecQuat(force, (last.v - first.v) / h - g, back)
        total += force
    mean = total / (len(states) - 1)
    cutoff = float(model.sensor_cutoff[index])
    return np.clip(mean, -cutoff, cutoff) if cutoff > 0 else mean


def _motion(model: mujoco.MjModel, scratch: mujoco.MjData, state: State, site: int) -> _Motion:
    """Return rotation and velocity, world axes, of a site."""
    scratch.qpos[:], scratch.qvel[:] = state
    mujoco.mj_kinematics(model, scratch)
    mujoco.mj_comPos(model, scratch)
    mujoco.mj_comVel(model, scratch)
    quat, velocity = np.zeros(4), np.zeros(6)
    mujoco.mju_mat2Quat(quat, scratch.site_xmat[site])
    kind = mujoco.mjtObj.mjOBJ_SITE
    mujoco.mj_objectVelocity(model, scratch, kind, site, velocity, 0)
    return _Motion(quat, velocity[3:])
