"""Mechanisms and controllers for the tests, and random states on their manifold."""

from functools import cache

import casadi as ca
import mujoco
import numpy as np

from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.control.inverse_dynamics.viability import SHORTFALL
from mbcasadi.control.limits.joint_limits import acceleration_bounds, limited_joints_of
from mbcasadi.description import Contact
from mbcasadi.system import read_mjcf

FEET = ("FL", "FR", "RL", "RR")
SOLES = tuple(f"{side}_foot_{i}" for side in ("left", "right") for i in range(1, 5))


@cache
def system_of(name):
    return read_mjcf(models.path(name))


def without_shortfall(problem):
    """Return a QP whose limits of positions are as hard as if their shortfall were zero."""
    if SHORTFALL not in problem.row_names:
        return problem
    own = problem.row_names.index(SHORTFALL)
    column = int(np.flatnonzero(problem.A_qp[own])[0])
    shift = problem.A_qp[:, column] * problem.lba[own] / problem.A_qp[own, column]
    A = np.delete(np.delete(problem.A_qp, own, 0), column, 1)
    H = np.delete(np.delete(problem.H, column, 0), column, 1)
    lba, uba = (np.delete(bound - shift, own) for bound in (problem.lba, problem.uba))
    names = tuple(name for name in problem.row_names if name != SHORTFALL)
    g = np.delete(problem.g, column)
    limits = tuple(name for name in problem.limits if name != SHORTFALL)
    kept = {"row_names": names, "limits": limits}
    return problem._replace(A_qp=A, H=H, g=g, lba=lba, uba=uba, **kept)


def limited(law):
    """Return the limits of a controller's joints as numbers."""
    return limited_joints_of(law, law.joint_limits)


def hard_rows(law, problem, q, v):
    """Return the same with all that the limits of joints demand, even beyond the actuators."""
    joints = limited(law)
    state = q[list(joints.places)], v[list(joints.dofs)]
    symbols = [ca.SX.sym("x", len(joints.names)) for _ in state]
    bounds = acceleration_bounds(joints, *symbols, law.tick)
    ends = ca.Function("ends", symbols, bounds)(*state)
    problem = without_shortfall(problem)
    lba, uba = problem.lba.copy(), problem.uba.copy()
    for k, (name, dof) in enumerate(zip(joints.names, joints.dofs, strict=True)):
        row = problem.row_names.index(f"joint '{name}': range")
        lba[row], uba[row] = (float(end[k]) - problem.t[dof] for end in ends)
    return problem._replace(lba=lba, uba=uba)


def feet(names=FEET, **options):
    return [Contact(name, **({"friction": 0.7, "sides": 4} | options)) for name in names]


@cache
def quadruped_controller(press=0.0, **options):
    """Return the controller of a stance; its feet press with as much at least."""
    tasks = [
        FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base"),
        PostureTask(kp=50.0, weight=1.0),
    ]
    contacts = [Contact(name, friction=0.7, sides=4, min_force=press) for name in FEET]
    return InverseDynamicsQP(system_of("quadruped"), tasks, contacts, **options)


def stand(system, rng, spread=0.1, speed=0.3, key=None):
    """Return a random state around a keyframe (the authored configuration without one)."""
    q0 = system.tree.q0 if key is None else system.tree.keyframes[key]
    q = np.array(system.integrate(q0, spread * rng.standard_normal(system.nv))).ravel()
    return q, speed * rng.standard_normal(system.nv)


def admissible(J, v):
    """Return the part of v that the rows J leave free."""
    return v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v)


def closed(system, q, steps=30):
    """Return the configuration near q that satisfies the constraints, by Gauss and Newton."""
    for _ in range(steps):
        A = np.array(system.constraint_jacobian(q))
        step = -np.linalg.pinv(A, rcond=1e-9) @ np.array(system.constraint(q)).ravel()
        q = np.array(system.integrate(q, step)).ravel()
    return q


def with_sites(path, sites):
    """Return an MjSpec of a model file with further sites: (name, body, pos)."""
    spec = mujoco.MjSpec.from_file(str(path))
    for name, body, pos in sites:
        spec.body(body).add_site(name=name, pos=pos)
    return spec
