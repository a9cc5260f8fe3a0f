"""Mechanisms at rest with the weights that the tests of regulators use."""

from dataclasses import replace
from functools import cache

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import equilibrium, linearize

MODELS = ("cart_pole", "pendulum_on_four_bar", "planar_biped")
CONTROL_WEIGHT = {"pendulum_on_four_bar": 1.0, "cart_pole": 0.1, "planar_biped": 1e-4}


@cache
def at_rest(name):
    system = mb.read_mjcf(models.path(name))
    point = equilibrium(system)
    return linearize(system, point.q, None, point.u)


def in_another_basis(linear):
    """Return the same linear system at rest with bases that are turned by a random rotation."""
    rng = np.random.default_rng(6)
    turn = np.linalg.qr(rng.standard_normal((linear.n_q, linear.n_q)))[0]
    both = np.kron(np.eye(2), turn)
    return replace(
        linear,
        Z_q=linear.Z_q @ turn,
        Z_v=linear.Z_v @ turn,
        dfdx=both.T @ linear.dfdx @ both,
        dfdu=both.T @ linear.dfdu,
    )


def weights(linear):
    nv = linear.system.nv
    return np.r_[np.full(nv, 10.0), np.full(nv, 0.1)], CONTROL_WEIGHT[linear.system.name]


def states_near(linear, count, size=0.05, seed=3):
    """Return (q, v) with `count` columns beside the equilibrium, off the manifold as well."""
    rng, system = np.random.default_rng(seed), linear.system
    dq = size * rng.standard_normal((system.nv, count))
    q = np.array(system.integrate.map(count)(np.tile(linear.q[:, None], count), dq))
    return q, size * rng.standard_normal((system.nv, count))


def on_the_manifold(system, q, v):
    """Return the state that Newton's steps with singular values move onto the constraints."""
    if not system.nc:
        return q, v
    for _ in range(20):
        A = np.array(system.constraint_jacobian(q))
        step = -np.linalg.pinv(A, rcond=1e-3) @ np.array(system.constraint(q)).ravel()
        q = np.array(system.integrate(q, step)).ravel()
    A = np.array(system.constraint_jacobian(q))
    return q, v - np.linalg.pinv(A, rcond=1e-6) @ (A @ v)
