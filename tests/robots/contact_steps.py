"""Steps of a plant that are short enough for the contacts of feet.

MuJoCo finds contact forces by the inertia M, then takes the damping D of joints and servos into the
step: `(M + h D) a = M a_s` with the acceleration a_s that those forces were found for [Euler,
implicit, implicitfast]. So a foot gets at least the share

    s = min λ,     J (M + h D)⁻¹ Jᵀ x = λ J M⁻¹ Jᵀ x

of what its contact takes for done, and slides and bounces 1/s times as long as the model's
`solref` says. Spot's servos with 40 N m s/rad at legs without armature leave 0.15 at 2 ms: its feet
slide ahead by 10 mm/s in a trot whose contact forces would hold them back.
"""

from collections.abc import Sequence

import mujoco
import numpy as np

from robots.ground import Array

LEAST = 1 / 3
"""Share that is enough: a contact takes up to three times as long as the model says."""

SAME = 1e-9
"""Accelerations beside the largest one that are none."""

FINEST = 16
"""Steps in place of one, at most."""


def implicit_damping(model: mujoco.MjModel) -> Array:
    """Return D (nv,) that the step takes in: of joints, and of servos but by Euler's rule."""
    damping = np.array(model.dof_damping)
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER:
        return damping
    for k in range(model.nu):
        joint = model.actuator_trnid[k, 0]
        if model.actuator_trntype[k] == mujoco.mjtTrn.mjTRN_JOINT:
            gear = model.actuator_gear[k, 0]
            damping[model.jnt_dofadr[joint]] -= gear**2 * model.actuator_biasprm[k, 2]
    return damping


def contact_share(model: mujoco.MjModel, q: Array, sites: Sequence[str], step: float) -> float:
    """Return s of the worst of some sites at rest in a pose, in steps of so many s."""
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    M, J, shares = np.zeros((model.nv, model.nv)), np.zeros((3, model.nv)), list[float]()
    mujoco.mj_fullM(model, data, M)
    damped = M + step * np.diag(implicit_damping(model))
    for site in sites:
        mujoco.mj_jacSite(model, data, J, None, model.site(site).id)
        free, held = (J @ np.linalg.solve(inertia, J.T) for inertia in (M, damped))
        size, axes = np.linalg.eigh(free)
        kept = size > SAME * size[-1]  # a foot may move along less than three axes
        root = axes[:, kept] / np.sqrt(size[kept])
        shares.append(float(np.linalg.eigvalsh(root.T @ held @ root)[0]))
    return min(shares)


def contact_step(model: mujoco.MjModel, q: Array, sites: Sequence[str]) -> float:
    """Return the model's step, halved until contacts get `LEAST`, s."""
    step = float(model.opt.timestep)
    for halves in range(int(np.log2(FINEST)) + 1):
        if contact_share(model, q, sites, step / 2**halves) >= LEAST:
            return step / 2**halves
    return step / FINEST
