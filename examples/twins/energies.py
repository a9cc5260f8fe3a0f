"""Energies of bodies, from where they are: the velocities follow by the chain rule.

A position is written once, as an expression of the coordinates; `jtimes` gives its rate.
"""

import casadi as ca

GRAVITY = 9.81  # m/s², MuJoCo's default


def coordinates(n: int) -> tuple[ca.SX, ca.SX]:
    """Return the symbols q and v, both (n, 1)."""
    return ca.SX.sym("q", n), ca.SX.sym("v", n)


def towards(angle: ca.SX) -> ca.SX:
    """Return the (2, 1) unit vector at `angle` from the first axis towards the second."""
    return ca.vertcat(ca.cos(angle), ca.sin(angle))


def moving_mass(mass: float, position: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `½ m |ṙ|²`, J, of a point mass at `position` r(q), m."""
    return 0.5 * mass * ca.sumsqr(ca.jtimes(position, q, v))


def turning_body(inertia: float, angle: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `½ I θ̇²`, J, of a body at `angle` θ(q) in the plane; I in kg m²."""
    return 0.5 * inertia * ca.jtimes(angle, q, v) ** 2


def lifted_mass(mass: float, height: ca.SX, gravity: float = GRAVITY) -> ca.SX:
    """Return `m g z`, J."""
    return mass * gravity * height


def rod_inertia(mass: float, length: float) -> float:
    """Return `m l² / 12`, kg m²: a thin uniform rod about its middle."""
    return mass * length**2 / 12
