"""Energies of bodies from their positions: the velocities follow by the chain rule.

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


def moving_bar(
    mass: float, inertia: float, ends: tuple[ca.SX, ca.SX], angle: ca.SX, q: ca.SX, v: ca.SX
) -> ca.SX:
    """Return `½ m |ṙ|² + ½ I θ̇²`, J, of a bar with its mass centre midway between `ends`."""
    return moving_mass(mass, (ends[0] + ends[1]) / 2, q, v) + turning_body(inertia, angle, q, v)


def lifted_bar(mass: float, ends: tuple[ca.SX, ca.SX], gravity: float = GRAVITY) -> ca.SX:
    """Return `m g z`, J, of a bar with its mass centre midway between `ends`; z is second."""
    return lifted_mass(mass, (ends[0] + ends[1])[1] / 2, gravity)


def lifted_mass(mass: float, height: ca.SX, gravity: float = GRAVITY) -> ca.SX:
    """Return `m g z`, J."""
    return mass * gravity * height


def rod_inertia(mass: float, length: float) -> float:
    """Return `m l² / 12`, kg m²: a thin uniform rod about its middle."""
    return mass * length**2 / 12


def capsule_inertia(mass: float, length: float, radius: float) -> tuple[float, float]:
    """Return the inertia, kg m², of a solid capsule about its middle: across and along its axis.

    The capsule is a cylinder of `length` between two half balls of `radius`.
    """
    ball = mass * 4 * radius / (4 * radius + 3 * length)
    cylinder = mass - ball
    across = cylinder * (radius**2 / 4 + length**2 / 12)
    across += ball * (0.4 * radius**2 + length**2 / 4 + 0.375 * length * radius)
    return across, cylinder * radius**2 / 2 + 0.4 * ball * radius**2
