"""Mechanisms that are handed on, and stand-ins for the objects that take them."""

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


def as_function(expression, *symbols):
    return ca.Function("f", list(symbols), [expression])


def swing(four_bar, moving):
    """Return the states and controls that Opti finds to slow the moving four-bar down."""
    x0, _ = moving
    opti, x, u, *_ = to_opti(four_bar, 10, PERIOD, x0[:4], x0[4:])
    opti.minimize(ca.sumsqr(x[4:, 1:]) + 1e-3 * ca.sumsqr(u))
    opti.solver("ipopt", QUIET)
    solution = opti.solve()
    return np.asarray(solution.value(x)), np.atleast_2d(solution.value(u))


class FakeDoMpc:
    """The documented part of `do_mpc.model.Model`."""

    def __init__(self):
        self.symbols, self.right, self.done = {}, {}, False

    def set_variable(self, var_type, var_name, shape):
        assert not self.done
        self.symbols[var_type, var_name] = ca.MX.sym(var_name, *shape)
        return self.symbols[var_type, var_name]

    def set_rhs(self, var_name, expr):
        assert not self.done
        assert expr.shape == self.symbols["_x", var_name].shape
        self.right[var_name] = expr

    def setup(self):
        self.done = True

    @property
    def function(self):
        right = ca.vertcat(*(self.right[name] for name in ("q", "v")))
        return as_function(right, *self.symbols.values())


class FakeOcp:
    """The documented part of `rockit.Ocp`."""

    def __init__(self):
        self.t, self.states, self.controls, self.parameters = ca.MX.sym("t"), [], [], []
        self.der, self.values = {}, []

    def state(self, n_rows):
        self.states.append(ca.MX.sym("x", n_rows))
        return self.states[-1]

    def control(self, n_rows):
        self.controls.append(ca.MX.sym("u", n_rows))
        return self.controls[-1]

    def parameter(self, n_rows, grid):
        assert grid == "control"
        self.parameters.append(ca.MX.sym("p", n_rows))
        return self.parameters[-1]

    def set_der(self, state, der):
        assert state.shape == der.shape
        self.der[id(state)] = der

    def set_value(self, parameter, value):
        self.values.append((parameter, value))

    @property
    def function(self):
        right = ca.vertcat(*(self.der[id(state)] for state in self.states))
        return as_function(right, *self.states, *self.controls, *self.parameters, self.t)
