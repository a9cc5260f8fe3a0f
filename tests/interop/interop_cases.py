"""Mechanisms that are handed on."""

import casadi as ca
import numpy as np

from mbcasadi import models
from mbcasadi.interop import to_opti
from mbcasadi.mpc import discrete_dynamics
from mbcasadi.system import from_lagrangian, read_mjcf

PERIOD = 0.01  # s
QUIET = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False, "ipopt.tol": 1e-10}


def four_bar():
    return read_mjcf(models.path("pendulum_on_four_bar"))


def moving(four_bar):
    """Return a state (8,) in full motion on the manifold, and the control that drove it there."""
    step, x = discrete_dynamics(four_bar, PERIOD), np.concatenate([four_bar.tree.q0, np.zeros(4)])
    for _ in range(3):
        x = step(x, [3.0], []).full().ravel()
    assert np.abs(x[4:]).max() > 0.5
    return x, [3.0]


def rails():
    """Return two carts, the first of which is led along a rail that moves in time."""
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    phi = q[0] - ca.sin(t)
    return from_lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, B=[[0], [1]], phi=phi, t=t)


def carts():
    """Return two carts of 1 and 3 kg with a coupling that can be opened."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    kinetic = v[0] ** 2 / 2 + 3 * v[1] ** 2 / 2
    return from_lagrangian(q, v, kinetic=kinetic, B=[[1], [0]], phi=q[0] - q[1]).with_mask()


def runge_kutta(f, x, h):
    """Return one step of the classical method."""
    k1 = f(x)
    k2 = f(x + h / 2 * k1)
    k3 = f(x + h / 2 * k2)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(x + h * k3))


def swing(four_bar, moving):
    """Return the states and controls that Opti finds to slow the moving four-bar down."""
    x0, _ = moving
    opti, x, u, *_ = to_opti(four_bar, 10, PERIOD, x0[:4], x0[4:])
    opti.minimize(ca.sumsqr(x[4:, 1:]) + 1e-3 * ca.sumsqr(u))
    opti.solver("ipopt", QUIET)
    solution = opti.solve()
    return np.asarray(solution.value(x)), np.atleast_2d(solution.value(u))
