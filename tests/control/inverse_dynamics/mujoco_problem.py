"""The full problem of inverse dynamics from MuJoCo's own matrices: nothing of the package."""

import mujoco
import numpy as np
from full_problem import Point, assembled, chosen, frame_axes, rotation_error


def at_state(model, q, v):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    return data


def site_motion(model, data, name):
    """Return J (6, nv) and `J̇ v` (6,) of a site, linear above angular, world axes."""
    site = model.site(name)
    J, rate = np.zeros((6, model.nv)), np.zeros((6, model.nv))
    mujoco.mj_jacSite(model, data, J[:3], J[3:], site.id)
    point, body = data.site_xpos[site.id], int(site.bodyid[0])
    mujoco.mj_jacDot(model, data, rate[:3], rate[3:], point, body)
    return J, rate @ data.qvel


def site_task(model, data, task, part):
    """Return (J, rhs, weight) of a FrameTask of a site; `part` are its slices of the reference."""
    J, bias = site_motion(model, data, task.frame)
    site, rows, rhs = model.site(task.frame).id, [], []
    kp, kd = task.kp, 2 * np.sqrt(task.kp)
    if task.position:
        chosen = ["xyz".index(a) for a in task.position]
        rows += chosen
        error = part["position"] - data.site_xpos[site][chosen]
        rhs += [part["acceleration"] + kd * (part["velocity"] - J[chosen] @ data.qvel) + kp * error]
    if task.orientation:
        chosen = ["xyz".index(a) for a in task.orientation]
        rows += [3 + k for k in chosen]
        R = data.site_xmat[site].reshape(3, 3)
        error = rotation_error(part["quaternion"], R)[chosen]
        rate = part["angular_velocity"] - J[3:][chosen] @ data.qvel
        rhs += [part["angular_acceleration"] + kd * rate + kp * error]
    return J[rows], np.concatenate(rhs) - bias[rows], np.full(len(rows), task.weight)


def mujoco_full_problem(model, q, v, tasks, contacts, *, weights, loops=(), on=None):
    """Return the full problem of a model whose actuators are motors of unit gain.

    Args:
        model: the MjModel.
        q, v: state.
        tasks: pairs of FrameTask and its slices of the reference.
        contacts: of sites.
        weights: of actuator forces (nu,) and of internal forces.
        loops: pairs of sites that stay together.
        on: one for each contact that is on; all by default.
    """
    data, none = at_state(model, q, v), np.zeros((0, model.nv))
    M, B = np.zeros((model.nv, model.nv)), np.zeros((model.nv, model.nu))
    mujoco.mj_fullM(model, data, M)
    for k in range(model.nu):
        B[model.jnt_dofadr[model.actuator_trnid[k, 0]], k] = model.actuator_gear[k, 0]
    moving, active = [], chosen(contacts, on)
    for contact in active:
        (J, c), axes = site_motion(model, data, contact.frame), frame_axes(contact.normal)
        site = model.site(contact.frame).id
        place, body = data.site_xpos[site], int(model.site_bodyid[site])
        moving.append(Point(axes @ J[:3], axes @ c[:3], axes, place, body))
    apart = [[site_motion(model, data, name) for name in pair] for pair in loops]
    A = np.vstack([none, *(a[0][:3] - b[0][:3] for a, b in apart)])
    c = np.concatenate([np.zeros(0), *(a[1][:3] - b[1][:3] for a, b in apart)])
    dynamics = {"M": M, "f": data.qfrc_passive - data.qfrc_bias, "B": B, "A": A, "c": c}
    tasks, limits = [site_task(model, data, *pair) for pair in tasks], model.actuator_ctrlrange
    full = assembled(dynamics, moving, active, tasks, limits, weights)
    full.internal += np.diag(1.0 * ~full.J.any(axis=1))  # across a planar mechanism: no force
    return full
