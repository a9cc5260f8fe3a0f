"""What the step of a plant leaves of the motion that its contact forces were found for.

MuJoCo finds contact forces by the inertia M, then takes the damping D of joints and servos into the
step: `(M + h D) a = M a_s` with the acceleration a_s that those forces were found for [Euler,
implicit, implicitfast; no other rule]. So a foot gets at least the share

    s = min λ,     J (M + h D)⁻¹ Jᵀ x = λ J M⁻¹ Jᵀ x

of what its contact takes for done, and slides and bounces 1/s times as long as the model's
`solref` says: feet of Spot in a trot, whose servos damp legs without armature by 40 N m s/rad.
"""

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.plant.contacts import ContactFrame, frame_position

Array = NDArray[np.float64]

ENOUGH = 1 / 3
"""Share that is enough: a contact takes up to three times as long as the model says."""

FINEST = 16
"""Steps in place of one, at most."""

SAME = 1e-9
"""Accelerations beside the largest one that are none."""

RULE = mujoco.mjtIntegrator
DAMPED = (RULE.mjINT_IMPLICIT, RULE.mjINT_IMPLICITFAST)
"""Rules that take the damping of servos in; Euler's takes that of joints."""


def implicit_damping(model: mujoco.MjModel) -> Array:
    """Return D (nv,) that the step takes in behind the contacts, of joints and of their servos."""
    rule, damping = model.opt.integrator, np.array(model.dof_damping)
    if rule not in DAMPED:
        return damping if rule == RULE.mjINT_EULER else np.zeros(model.nv)
    for k in range(model.nu):
        joint = model.actuator_trnid[k, 0]
        if model.actuator_trntype[k] == mujoco.mjtTrn.mjTRN_JOINT:
            gear = model.actuator_gear[k, 0]
            damping[model.jnt_dofadr[joint]] -= gear**2 * model.actuator_biasprm[k, 2]
    return damping


def contact_share(
    model: mujoco.MjModel,
    q: Array,
    frames: Sequence[ContactFrame],
    step: float,
    touched: int = 0,
) -> float:
    """Return s of the worst of some frames at rest in a pose; 1 for none.

    Args:
        model, q: MuJoCo's, and the pose (nq,).
        frames: on the robot.
        step: s.
        touched: index of the body that they touch; the world by default.
    """
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    M, least = np.zeros((model.nv, model.nv)), 1.0
    J, other = np.zeros((2, 3, model.nv))
    mujoco.mj_fullM(model, data, M)
    damped = M + step * np.diag(implicit_damping(model))
    for frame in frames:
        place = frame_position(data, frame)
        mujoco.mj_jac(model, data, J, None, place, frame.body)
        mujoco.mj_jac(model, data, other, None, place, touched)
        moves = J - other
        free, held = (moves @ np.linalg.solve(inertia, moves.T) for inertia in (M, damped))
        size, axes = np.linalg.eigh(free)
        kept = size > SAME * size[-1]  # a foot may move along less than three axes
        root = axes[:, kept] / np.sqrt(size[kept])
        least = min([least, *np.linalg.eigvalsh(root.T @ held @ root)])
    return float(least)


def contact_step(
    model: mujoco.MjModel, q: Array, frames: Sequence[ContactFrame], touched: int = 0
) -> float:
    """Return the model's step, halved until contacts get `ENOUGH`, s."""
    step, finer = float(model.opt.timestep), 1
    while finer < FINEST and contact_share(model, q, frames, step / finer, touched) < ENOUGH:
        finer *= 2
    return step / finer
