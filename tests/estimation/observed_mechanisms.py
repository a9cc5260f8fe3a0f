"""Mechanisms under observation: their poses, their answers, and forces that rows leave free."""

import numpy as np

import mbcasadi as mb
from mbcasadi.plant import Plant
from mbcasadi.system import evaluate

GAIN = 50.0
QUIET = {"rate_noise": 1e-3, "force_noise": 0.05}


def system_of(name):
    return mb.read_mjcf(mb.models.path(name))


def start_of(system):
    return next(iter(system.tree.keyframes.values()), system.tree.q0)


def observed(observer, **inputs):
    """Return the outputs of a tick as arrays."""
    return {key: np.array(value).ravel() for key, value in observer(**inputs).items()}


def force_projector_of(system):
    """Return q → (nv, nv), the part of a force that rows leave free, in NumPy.

    Lengths are those of coordinates in the sizes of the mechanism: `v = D v'`, `f' = D f`.
    """
    D = np.diag(system.scales.coordinates)

    def projector(q):
        A = np.array(evaluate(system.constraint_jacobian, {"q": q, "t": 0.7})) @ D
        free = np.eye(system.nv) - np.linalg.pinv(A, rcond=1e-9) @ A
        return np.linalg.solve(D, free @ D)

    return projector if system.nc else lambda _q: np.eye(system.nv)


def standing(push=None, duration=1.5):
    """Return the plant of a quadruped that stands by servos of its own, and u of the last tick."""
    plant = Plant(mb.models.path("quadruped"))
    system = system_of("quadruped")
    stand = system.tree.keyframes["stand"]
    plant.reset(stand)
    u = np.zeros(12)
    for k in range(round(duration / plant.timestep)):
        if push is not None and k * plant.timestep >= 1.0:
            plant.apply_body_forces({"trunk": push})
        yield plant, u
        u = 60 * (stand[7:] - plant.q[7:]) - 2 * plant.v[6:]
        plant.step(u)


def feet_of(system):
    return [contact.as_contact() for contact in mb.contacts_of(system, ground="floor")]
