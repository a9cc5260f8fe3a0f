"""Mechanisms and controllers for the tests, and random states on their manifold."""

from functools import cache

import mujoco
import numpy as np

from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.system import read_mjcf

FEET = ("FL", "FR", "RL", "RR")
SOLES = tuple(f"{side}_foot_{i}" for side in ("left", "right") for i in range(1, 5))


@cache
def system_of(name):
    return read_mjcf(models.path(name))


def feet(names=FEET, **options):
    return [Contact(name, **({"friction": 0.7, "sides": 4} | options)) for name in names]


@cache
def quadruped_controller(**options):
    contacts = feet()
    tasks = [
        FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base"),
        PostureTask(kp=50.0, weight=1.0),
    ]
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
