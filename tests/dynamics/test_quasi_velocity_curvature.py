"""Curvature of the inertia as a metric, against spheres, planes and rotations."""

import casadi as ca
import numpy as np
import pytest
from support.constrained_mechanisms import mechanism

import mbcasadi as mb
from mbcasadi.dynamics.quasi_velocity_functions import (
    quasi_velocity_curvature,
    quasi_velocity_terms,
)


def lagrangian(kinetic):
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    return mb.from_lagrangian(q, v, kinetic=kinetic(q, v))


def curvature(system, root, q, seed=3):
    """Return R and its two velocities."""
    v1, v2 = np.random.default_rng(seed).standard_normal((2, system.nv))
    R = quasi_velocity_curvature(system, root=root)(q, v1, v2).full()
    return R, v1, v2


@pytest.mark.parametrize("root", ["cholesky", "symmetric"])
def test_curvature_of_a_sphere_is_one_over_its_radius_squared(root):
    radius, q = 2.0, np.array([0.7, 0.3])
    sphere = lagrangian(lambda q, v: radius**2 / 2 * (v[0] ** 2 + (ca.sin(q[0]) * v[1]) ** 2))
    R, v1, v2 = curvature(sphere, root, q)
    area = radius**2 * np.sin(q[0]) * (v1[0] * v2[1] - v1[1] * v2[0])
    assert abs(R[0, 1] / area) == pytest.approx(1 / radius**2, rel=1e-12)
    np.testing.assert_allclose(R + R.T, 0.0, atol=1e-14)


@pytest.mark.parametrize("root", ["cholesky", "symmetric"])
def test_curvature_tells_flat_inertias_from_others_and_the_coriolis_term_integrable_roots(root):
    q = np.array([0.7, 0.3])
    constant = lagrangian(lambda _, v: v[0] ** 2 + v[1] ** 2 + v[0] * v[1])
    polar = lagrangian(lambda q, v: (v[0] ** 2 + q[0] ** 2 * v[1] ** 2) / 2)
    pendulum = mechanism("double_pendulum").system
    sizes = [np.linalg.norm(curvature(s, root, q)[0]) for s in (constant, polar, pendulum)]
    assert sizes[0] == 0.0
    assert sizes[1] < 1e-14
    assert sizes[2] > 1e-2
    Gammas = [
        np.abs(quasi_velocity_terms(s, root=root)(q, np.ones(2), np.zeros(2))[6].full()).max()
        for s in (constant, polar)
    ]
    assert Gammas[0] == 0.0  # v̄ is the rate of Wᵀ q
    assert Gammas[1] > 0.1  # flat, but these quasi-velocities are no rates of coordinates


def test_curvature_holds_with_quaternions():
    """A ball of equal moments is the unit 3-sphere, `R(x, y) z = [[x, y], z] / 4`."""
    ball = mb.read_mjcf(
        '<mujoco><worldbody><body><joint type="ball"/><inertial pos="0 0 0" mass="1" '
        'diaginertia=".4 .4 .4"/></body></worldbody></mujoco>'
    )
    q = np.array([0.5, -0.5, 0.1, 0.7])
    q /= np.linalg.norm(q)
    for root in ("cholesky", "symmetric"):
        R, v1, v2 = curvature(ball, root, q)
        x, y, z = np.cross(v1, v2) / 4
        expected = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        np.testing.assert_allclose(R, -expected, atol=1e-14)
    body = mb.read_mjcf(
        '<mujoco><worldbody><body><joint type="ball"/><inertial pos=".1 .2 .3" mass="2" '
        'fullinertia=".3 .4 .5 .01 .02 .03"/></body></worldbody></mujoco>'
    )
    sizes = [np.linalg.norm(curvature(body, root, q)[0]) for root in ("cholesky", "symmetric")]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-12)
    assert sizes[0] > 1e-2
