"""The same robot with other actuators: motors in place of servos, servos of motors, weak ones."""

from pathlib import Path

import mujoco
import numpy as np

STIFFNESS, DAMPED = 30.0, 1.0
"""Natural frequency, 1/s, and damping of servos, with the inertia that their joint has alone."""

LOADED = 0.02
"""Share of the largest force below which an actuator has no load."""


def motors_for_servos(path: str | Path) -> str:
    """Return a model whose servos are motors of the same largest force.

    Motors without a limit of their force have none of their control.
    """
    spec = mujoco.MjSpec.from_file(str(path))
    for actuator in spec.actuators:
        if actuator.biastype != mujoco.mjtBias.mjBIAS_NONE:
            limits = np.array(actuator.forcerange)
            limited = bool(limits.any())
            actuator.set_to_motor()
            actuator.ctrllimited = int(limited)
            actuator.ctrlrange = limits
            actuator.actlimited = 0
    for key in spec.keys:
        key.ctrl, key.act = np.zeros(len(key.ctrl)), np.zeros(0)
    spec.compile()
    return spec.to_xml()


def servos_for_motors(path: str | Path) -> str:
    """Return a model whose motors at joints are servos of the same largest force."""
    spec = mujoco.MjSpec.from_file(str(path))
    model = mujoco.MjModel.from_xml_path(str(path))
    for k, actuator in enumerate(spec.actuators):
        joint = model.actuator_trnid[k, 0]
        of_joint = actuator.trntype == mujoco.mjtTrn.mjTRN_JOINT
        if actuator.biastype != mujoco.mjtBias.mjBIAS_NONE or not of_joint:
            continue
        gear = model.actuator_gear[k, 0]
        inertia = model.dof_M0[model.jnt_dofadr[joint]] / gear**2
        largest = model.actuator_gainprm[k, 0] * model.actuator_ctrlrange[k]
        actuator.set_to_position(
            kp=STIFFNESS**2 * inertia, kv=2 * DAMPED * STIFFNESS * inertia, inheritrange=False
        )
        actuator.ctrllimited = int(model.jnt_limited[joint])
        actuator.ctrlrange = np.sort(gear * model.jnt_range[joint])
        if model.actuator_ctrllimited[k]:
            actuator.forcelimited, actuator.forcerange = 1, largest
    for key in spec.keys:
        key.ctrl = np.zeros(0)
    spec.compile()
    return spec.to_xml()


def weak(path: str | Path, load: np.ndarray) -> str:
    """Return a model whose actuators give at most half of the forces (nu,) of a static load.

    Actuators that carry next to nothing keep their limits.
    """
    spec = mujoco.MjSpec.from_file(str(path))
    for actuator, force in zip(spec.actuators, np.abs(load), strict=True):
        if force > LOADED * np.abs(load).max():
            actuator.forcelimited, actuator.forcerange = 1, [-0.5 * force, 0.5 * force]
    spec.compile()
    return spec.to_xml()
