"""A MuJoCo model of hinges and slides once more, as a Lagrangian with frames as expressions.

Positions and rotations of the bodies are written as expressions of q, energies follow from them,
and each site becomes a frame of `System.with_frame`. Lengths and masses may be in other units than
metres and kilograms.
"""

from dataclasses import dataclass

import casadi as ca
import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

import mbcasadi as mb


@dataclass(frozen=True)
class Placed:
    """A body's origin and rotation as expressions."""

    p: ca.SX
    R: ca.SX


def matrix_of(quat):
    return Rotation.from_quat(np.roll(quat, -1)).as_matrix()


def turned(axis, angle):
    """Return Rodrigues' rotation about a unit axis."""
    x, y, z = axis
    K = ca.DM([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return ca.SX.eye(3) + ca.sin(angle) * K + (1 - ca.cos(angle)) * (K @ K)


def placed_bodies(model, q, length):
    """Return p, R of every body of a model that has hinges and slides only."""
    bodies = [Placed(ca.SX.zeros(3), ca.SX.eye(3))]
    for i in range(1, model.nbody):
        parent = bodies[model.body_parentid[i]]
        p = parent.p + parent.R @ ca.DM(length * model.body_pos[i])
        R = parent.R @ ca.DM(matrix_of(model.body_quat[i]))
        for j in np.flatnonzero(model.jnt_bodyid == i):
            axis, place = model.jnt_axis[j], q[int(model.jnt_qposadr[j])]
            if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_SLIDE:
                p = p + R @ ca.DM(axis) * place
            else:
                anchor = ca.DM(length * model.jnt_pos[j])
                fixed = p + R @ anchor
                R = R @ turned(axis, place)
                p = fixed - R @ anchor
        bodies.append(Placed(p, R))
    return bodies


def energies(model, bodies, q, v, length):
    """Return T and V, in kg, s and the unit of length."""
    kinetic, potential = 0.5 * ca.dot(v, coordinate_armature(model, length) * v), 0
    for i in range(1, model.nbody):
        mass, R = float(model.body_mass[i]), bodies[i].R @ matrix_of(model.body_iquat[i])
        centre = bodies[i].p + bodies[i].R @ ca.DM(length * model.body_ipos[i])
        S = R.T @ ca.reshape(ca.jtimes(ca.vec(R), q, v), 3, 3)
        omega = ca.vertcat(S[2, 1], S[0, 2], S[1, 0])
        inertia = ca.DM(length**2 * model.body_inertia[i])
        kinetic += 0.5 * mass * ca.sumsqr(ca.jtimes(centre, q, v))
        kinetic += 0.5 * ca.dot(omega, inertia * omega)
        potential -= mass * ca.dot(ca.DM(length * model.opt.gravity), centre)
    return kinetic, potential


def coordinate_armature(model, length):
    slides = model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
    return ca.DM(model.dof_armature * np.where(slides, 1.0, length**2))


def lagrangian_of(model, closing=(), *, length=1.0, mass=1.0, points=()):
    """Return the System of a model of motors, hinges and slides.

    Args:
        model: the MjModel.
        closing: pairs of (body, anchor, body, anchor, world axes) that stay together.
        length, mass: a metre in the unit of length, a kilogram in that of mass.
        points: names of sites whose rotation is not given.
    """
    q, v = ca.SX.sym("q", model.nv), ca.SX.sym("v", model.nv)
    bodies = placed_bodies(model, q, length)
    kinetic, potential = energies(model, bodies, q, v, length)
    slides = model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
    damping = ca.DM(model.dof_damping * np.where(slides, 1.0, length**2))
    B = np.zeros((model.nv, model.nu))
    for k in range(model.nu):
        B[model.jnt_dofadr[model.actuator_trnid[k, 0]], k] = model.actuator_gear[k, 0]
    gaps = [ca.SX(0, 1)]
    for first, anchor, second, other, axes in closing:
        a, b = (bodies[model.body(name).id] for name in (first, second))
        gap = (
            a.p
            + a.R @ ca.DM(length * np.array(anchor))
            - b.p
            - b.R @ ca.DM(length * np.array(other))
        )
        gaps.append(gap[["xyz".index(axis) for axis in axes]])
    system = mb.from_lagrangian(
        q, v, kinetic=mass * kinetic, potential=mass * potential, force=-mass * damping * v, B=B,
        phi=ca.vertcat(*gaps), ctrl_range=mass * length**2 * model.actuator_ctrlrange,
    )  # fmt: skip
    for i in range(model.nsite):
        body, name = bodies[model.site_bodyid[i]], model.site(i).name
        p = body.p + body.R @ ca.DM(length * model.site_pos[i])
        R = None if name in points else body.R @ ca.DM(matrix_of(model.site_quat[i]))
        system = system.with_frame(name, q, p, R)
    return system
