"""LQR on a constrained model is the LQR of a model without constraints, derived by hand."""

from functools import cache

import minimal_models
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm, solve_continuous_are, solve_discrete_are

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import (
    equilibrium,
    finite_horizon_gains,
    gain_in_full_coordinates,
    linearize,
    lqr_gain,
    poles_gain,
)

SAME = 1e-8  # relative difference of gains and poles
REST = 1e-9  # rates of the hand-derived model at our equilibrium
PERIOD = 2e-3  # s
CONTROL_WEIGHT = {"pendulum_on_four_bar": 1.0, "cart_pole": 0.1, "planar_biped": 1e-4}
MODELS = sorted(CONTROL_WEIGHT)


@cache
def pair(name):
    """Return our linear system and the one derived by hand, at the same equilibrium."""
    system = mb.read_mjcf(models.path(name))
    point = equilibrium(system)
    linear = linearize(system, point.q, None, point.u)
    return linear, getattr(minimal_models, name)(point.u)


def weights(linear):
    """Return full Q on (δq, δv) and N that no symmetry of the mechanism suits, and R."""
    rng = np.random.default_rng(1)
    size = 2 * linear.system.nv
    root = rng.standard_normal((size, size))
    R = CONTROL_WEIGHT[linear.system.name] * np.arange(1.0, linear.nu + 1)
    cross = 0.1 * root @ rng.standard_normal((size, linear.nu)) * np.sqrt(R / size)
    return root @ root.T, R, cross


def on_minimal(linear, minimal, K):
    """Return a gain on x of ours as one on (δy, δẏ)."""
    return gain_in_full_coordinates(linear, K) @ minimal.T


@pytest.mark.parametrize("name", MODELS)
def test_the_equilibrium_is_one_of_the_minimal_model(name):
    _, minimal = pair(name)
    assert np.abs(minimal.left).max() < REST


@pytest.mark.parametrize("name", MODELS)
def test_continuous_lqr_equals_that_of_the_minimal_model(name):
    linear, minimal = pair(name)
    Q, R, N = weights(linear)
    actual = lqr_gain(linear, Q, R, N=N)
    T, dfdx, dfdu = minimal.T, minimal.dfdx, minimal.dfdu
    S = solve_continuous_are(dfdx, dfdu, T.T @ Q @ T, np.diag(R), s=T.T @ N)
    expected = np.diag(1 / R) @ (dfdu.T @ S + N.T @ T)
    assert_allclose(
        on_minimal(linear, minimal, actual.K), expected, rtol=0, atol=SAME * np.abs(expected).max()
    )
    poles = np.linalg.eigvals(minimal.dfdx - minimal.dfdu @ expected)
    assert_allclose(
        np.sort_complex(actual.poles), np.sort_complex(poles), atol=SAME * np.abs(poles).max()
    )


def sampled_by_quadrature(minimal, Q, R, N):
    """Return the minimal model and its cost over a period, by Gauss's quadrature."""
    nx, T = minimal.dfdx.shape[0], minimal.T
    nu = R.size
    F = np.zeros((nx + nu, nx + nu))
    F[:nx] = np.hstack([minimal.dfdx, minimal.dfdu])
    weight = np.block([[T.T @ Q @ T, T.T @ N], [N.T @ T, np.diag(R)]])
    cost = np.zeros_like(weight)
    for node, share in zip(*np.polynomial.legendre.leggauss(8), strict=True):
        step = expm(F * PERIOD * (1 + node) / 2)
        cost += PERIOD / 2 * share * step.T @ weight @ step
    return expm(F * PERIOD)[:nx], cost


@pytest.mark.parametrize("name", MODELS)
def test_sampled_lqr_equals_that_of_the_minimal_model_under_hold(name):
    linear, minimal = pair(name)
    Q, R, N = weights(linear)
    actual = lqr_gain(linear, Q, R, N=N, period=PERIOD)
    nx = minimal.dfdx.shape[0]
    step, cost = sampled_by_quadrature(minimal, Q, R, N)
    A, B = step[:, :nx], step[:, nx:]
    S = solve_discrete_are(A, B, cost[:nx, :nx], cost[nx:, nx:], s=cost[:nx, nx:])
    expected = np.linalg.solve(cost[nx:, nx:] + B.T @ S @ B, B.T @ S @ A + cost[nx:, :nx])
    assert_allclose(
        on_minimal(linear, minimal, actual.K), expected, rtol=0, atol=SAME * np.abs(expected).max()
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_finite_horizon_equals_that_of_the_minimal_model(name):
    """From the least-squares problem of all 12 controls at once: no Riccati equation in it."""
    linear, minimal = pair(name)
    Q, R, N = weights(linear)
    ticks, nx, nu = 12, linear.nx, linear.nu
    Q_end = 1e-3 * np.eye(2 * linear.system.nv)
    K = finite_horizon_gains(linear, Q, R, ticks, Q_end=Q_end, period=PERIOD)[0]
    step, cost = sampled_by_quadrature(minimal, Q, R, 0 * N)
    x = np.hstack([np.eye(nx), np.zeros((nx, ticks * nu))])  # state as (x_0, u_0, u_1, …)
    total = np.zeros((x.shape[1], x.shape[1]))
    for k in range(ticks):
        u = np.zeros((nu, x.shape[1]))
        u[:, nx + k * nu : nx + (k + 1) * nu] = np.eye(nu)
        both = np.vstack([x, u])
        total += both.T @ cost @ both
        x = step @ both
    total += x.T @ minimal.T.T @ Q_end @ minimal.T @ x
    expected = np.linalg.solve(total[nx:, nx:], total[nx:, :nx])[:nu]
    assert_allclose(
        on_minimal(linear, minimal, K), expected, rtol=0, atol=SAME * np.abs(expected).max()
    )


@pytest.mark.parametrize("name", ["pendulum_on_four_bar", "cart_pole"])
def test_placed_poles_are_those_of_the_minimal_model_and_the_gain_is_ackermanns(name):
    linear, minimal = pair(name)
    poles = np.array([-4 + 1j, -4 - 1j, -6, -9])
    K = on_minimal(linear, minimal, poles_gain(linear, poles))
    powers = [np.linalg.matrix_power(minimal.dfdx, k) for k in range(5)]
    reach = np.hstack([power @ minimal.dfdu for power in powers[:4]])
    polynomial = sum(c * p for c, p in zip(np.poly(poles).real[::-1], powers, strict=True))
    expected = np.linalg.solve(reach.T, np.eye(4)[-1]) @ polynomial
    assert_allclose(K[0], expected, atol=SAME * np.abs(expected).max())
