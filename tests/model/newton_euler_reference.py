"""Inverse dynamics of a MuJoCo model in world axes by NumPy, and its derivatives by complex steps.

It shares nothing with the package: positions, velocities and accelerations of the bodies in the
world, then virtual work. All of it is analytic, so a step of 1e-30 i along one tangent coordinate
gives derivatives without a difference: they are exact to rounding.
"""

import mujoco
import numpy as np

STEP = 1e-30
FREE, _BALL, SLIDE, HINGE = range(4)  # mjtJoint


def derivatives(m: mujoco.MjModel, q, v, a):
    """Return tau, ∂tau/∂q along `q ⊕ dq`, ∂tau/∂v of `M a + h`; tendons' armature apart."""
    by_q, by_v = np.zeros((m.nv, m.nv)), np.zeros((m.nv, m.nv))
    for k in range(m.nv):
        step = np.zeros(m.nv, complex)
        step[k] = 1j * STEP
        by_q[:, k] = inverse_dynamics(m, moved(m, q, step), v, a).imag / STEP
        by_v[:, k] = inverse_dynamics(m, q, v + step, a).imag / STEP
    return inverse_dynamics(m, q, v, a).real, by_q, by_v


def moved(m, q, step):
    """Return `q ⊕ step` to first order."""
    out = np.array(q, complex)
    for j in range(m.njnt):
        row, dof = m.jnt_qposadr[j], m.jnt_dofadr[j]
        kind = m.jnt_type[j]
        if kind in (HINGE, SLIDE):
            out[row] += step[dof]
            continue
        if kind == FREE:
            out[row : row + 3] += step[dof : dof + 3]
            row, dof = row + 3, dof + 3
        w, r, s = out[row], out[row + 1 : row + 4].copy(), step[dof : dof + 3] / 2
        out[row] = w - r @ s
        out[row + 1 : row + 4] = r + w * s + np.cross(r, s)
    return out


def inverse_dynamics(m, q, v, a):
    """Return `M a + h`, (nv,)."""
    tau = np.zeros(m.nv, complex) + m.dof_armature * a
    axes = []  # (dof, body, axis, point or None) in world axes
    frames = [(np.eye(3), np.zeros(3), *(np.zeros(3) for _ in range(3)), -m.opt.gravity)]
    for b in range(1, m.nbody):
        frames.append(_body_motion(m, b, frames[m.body_parentid[b]], (q, v, a), axes))
        R, p, w, dw, _, ap = frames[b]
        arm = R @ m.body_ipos[b]
        accel = ap + np.cross(dw, arm) + np.cross(w, np.cross(w, arm))
        Ri = R @ _rotation(m.body_iquat[b])
        inertia = Ri @ np.diag(m.body_inertia[b]) @ Ri.T
        force = m.body_mass[b] * accel
        moment = inertia @ dw + np.cross(w, inertia @ w)
        carriers = _ancestors(m, b)
        for dof, body, axis, point in axes:
            if body not in carriers:
                continue
            if point is None:
                tau[dof] += axis @ force
            else:
                tau[dof] += axis @ (moment + np.cross(p + arm - point, force))
    return tau


def _ancestors(m, b):
    out = {b}
    while b:
        b = m.body_parentid[b]
        out.add(b)
    return out


def _body_motion(m, b, parent, state, axes):
    q, v, a = state
    R, p, w, dw, vp, ap = parent
    arm = R @ m.body_pos[b]
    p, vp = p + arm, vp + np.cross(w, arm)
    ap = ap + np.cross(dw, arm) + np.cross(w, np.cross(w, arm))
    R = R @ _rotation(m.body_quat[b])
    for j in range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]):
        row, dof = m.jnt_qposadr[j], m.jnt_dofadr[j]
        kind = m.jnt_type[j]
        if kind == FREE:
            p, vp, ap = q[row : row + 3], v[dof : dof + 3], a[dof : dof + 3] - m.opt.gravity
            axes += [(dof + k, b, np.eye(3)[k], None) for k in range(3)]
            R, row, dof = _rotation(q[row + 3 : row + 7]), row + 3, dof + 3
            w, dw = R @ v[dof : dof + 3], R @ a[dof : dof + 3]
            axes += [(dof + k, b, R[:, k], p) for k in range(3)]
            continue
        if kind == SLIDE:
            z = R @ m.jnt_axis[j]
            arm = z * (q[row] - m.qpos0[row])
            ap = ap + np.cross(dw, arm) + np.cross(w, np.cross(w, arm))
            ap = ap + 2 * np.cross(w, z) * v[dof] + z * a[dof]
            p, vp = p + arm, vp + np.cross(w, arm) + z * v[dof]
            axes.append((dof, b, z, None))
            continue
        arm = R @ m.jnt_pos[j]
        point, a_point = p + arm, ap + np.cross(dw, arm) + np.cross(w, np.cross(w, arm))
        if kind == HINGE:
            z = R @ m.jnt_axis[j]
            R = _about(z, q[row] - m.qpos0[row]) @ R
            rate, rise = z * v[dof], z * a[dof]
            axes.append((dof, b, z, point))
        else:
            R = R @ _rotation(q[row : row + 4])
            rate, rise = R @ v[dof : dof + 3], R @ a[dof : dof + 3]
            axes += [(dof + k, b, R[:, k], point) for k in range(3)]
        dw, w = dw + rise + np.cross(w, rate), w + rate
        arm = -R @ m.jnt_pos[j]
        p, ap = point + arm, a_point + np.cross(dw, arm) + np.cross(w, np.cross(w, arm))
    return R, p, w, dw, vp, ap


def _rotation(quat):
    w, x, y, z = quat / np.sqrt(np.sum(np.asarray(quat) ** 2))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _about(axis, angle):
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)
