"""Small mechanisms whose motion is known otherwise."""

from functools import cache

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

import mbcasadi as mb
from mbcasadi.formulation import ConstrainedMotion

GRAVITY = 9.81


@cache
def slider_crank(copies: int = 1, longer: float = 0.0) -> mb.System:
    """A05's mechanism: two links of 1 m with 1 kg at their ends, absolute angles.

    The row may be repeated, and the rod may be longer than the crank, m.
    """
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    pin = ca.vertcat(ca.cos(q[0]), ca.sin(q[0]))
    end = pin + (1 + longer) * ca.vertcat(ca.cos(q[1]), ca.sin(q[1]))
    kinetic = (ca.sumsqr(ca.jtimes(pin, q, v)) + ca.sumsqr(ca.jtimes(end, q, v))) / 2
    potential = GRAVITY * (pin[1] + end[1])
    phi = ca.repmat(end[1], copies, 1)
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=potential, phi=phi, name="slider_crank"
    )


def crank_rate(t, y):
    """The equation of the crank alone: `(1 + 4 sin²) a + 4 sin cos v² = -g cos`."""
    sine, cosine = np.sin(y[0]), np.cos(y[0])
    return [y[1], -(4 * sine * cosine * y[1] ** 2 + GRAVITY * cosine) / (1 + 4 * sine**2)]


def crank_motion(angle: float, speed: float, duration: float):
    """Return t → (angle, speed) on the branch q2 = -q1, from the equation of the crank alone."""

    solution = solve_ivp(
        crank_rate, [0, duration], [angle, speed], method="DOP853", rtol=1e-13, atol=1e-13,
        dense_output=True,
    )  # fmt: skip
    return solution.sol


def classical(M, h, f, A, c, *, row_scale=1.0, rank_tol=0.0, pivot=True):
    """The textbook's multipliers, `(A M⁻¹ Aᵀ)⁻¹`: full rank is assumed."""
    free = ca.solve(M, f - h)
    lam = -ca.solve(A @ ca.solve(M, A.T), c + A @ free)
    return ConstrainedMotion(free + ca.solve(M, A.T @ lam), A.T @ lam, lam)


def particle(dimension: int, **rows) -> mb.System:
    """A free mass of 1 kg; rows as in `from_lagrangian`, functions of (q, v, t)."""
    q, v, t = ca.SX.sym("q", dimension), ca.SX.sym("v", dimension), ca.SX.sym("t")
    potential = GRAVITY * q[-1] if rows.pop("heavy", False) else 0.0
    timed = {"t": t} if rows.pop("timed", False) else {}
    made = {name: row(q, v, t) for name, row in rows.items()}
    return mb.from_lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, potential=potential, **made, **timed)


def knife_edge(slope_gravity: float) -> mb.System:
    """A skate on an incline: position x (downhill), y and heading; it does not slip sideways."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    A = ca.horzcat(ca.sin(q[2]), -ca.cos(q[2]), 0)
    return mb.from_lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, potential=-slope_gravity * q[0], A=A)


BALL = """<mujoco model="top"><option gravity="0 0 0"/><worldbody><body name="top">
  {joint}<inertial pos="{centre}" mass="1" diaginertia="0.1 0.2 0.25"/></body>
  </worldbody></mujoco>"""


def free_top() -> mb.System:
    return mb.read_mjcf(BALL.format(joint="<freejoint/>", centre="0 0 0"))


def ball_top() -> mb.System:
    return mb.read_mjcf(BALL.format(joint='<joint type="ball"/>', centre="0.1 0 0.3"))
