"""Small mechanisms for tests of real-time iterations, and two problems of them."""

import casadi as ca
import numpy as np

from mbcasadi import mpc
from mbcasadi.system import from_lagrangian
from support.problems import problem

UPRIGHT = np.array([0, np.pi, 0, 0])


def cart_pole(*, upright=False, limit=12.0):
    """Return a cart of 1 kg with a pole of 0.3 kg at 0.5 m, hanging, or standing, at q = 0."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    arm = -0.5 if upright else 0.5
    bob = ca.vertcat(v[0] + arm * v[1] * ca.cos(q[1]), arm * v[1] * ca.sin(q[1]))
    return from_lagrangian(
        q,
        v,
        kinetic=v[0] ** 2 / 2 + 0.3 * ca.sumsqr(bob) / 2,
        potential=-0.3 * 9.81 * arm * ca.cos(q[1]),
        B=[[1], [0]],
        ctrl_range=[[-limit, limit]],
        name="cart_pole",
    )


def swing_up(rail=np.inf, horizon=50, period=0.04, **given):
    """Return the problem of a hanging pole that is to stand, setpoint and straight guess."""
    weights = {"Q": [0.1, 1, 0.01, 0.01], "R": 0.05, "Q_end": [200, 200, 20, 20]}
    bounds = {} if np.isinf(rail) else {"q_bounds": [[-rail, rail], [-np.inf, np.inf]]}
    ocp = problem(given.pop("system", cart_pole()), horizon, period, **weights, **bounds, **given)
    straight = np.linspace(np.zeros(4), UPRIGHT, horizon + 1)
    guess = mpc.initial_guess(ocp, straight, np.zeros((horizon, 1))) if ocp.nx == 4 else None
    return ocp, ocp.parameters(setpoint_q=UPRIGHT[:2]), guess


BALANCE = {"Q": [1, 10, 0.1, 0.1], "R": 0.01, "Q_end": [40, 200, 10, 10]}


def balance(**given):
    """Return the problem of a pole that stands, q_1 = 0 upright, with twenty samples of 0.04 s."""
    return problem(given.pop("system", cart_pole(upright=True)), 20, 0.04, **BALANCE | given)


def sliding_mass(mass=2.0, **given):
    """Return a mass on a rail, pushed along it."""
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    given = {"name": "mass"} | given
    return from_lagrangian(q, v, kinetic=mass * v**2 / 2, B=[[1]], **given)


def coupled_carts():
    """Return carts of 1 kg and 3 kg whose places a row makes equal while its mask is on."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    kinetic = v[0] ** 2 / 2 + 3 * v[1] ** 2 / 2
    carts = from_lagrangian(q, v, kinetic=kinetic, B=[[1], [0]], phi=q[0] - q[1], name="carts")
    return carts.with_mask([0])
