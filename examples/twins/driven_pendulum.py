"""A pendulum whose pivot is shaken up and down: a constraint that depends on time.

`q = (x, z)` is the bob. One row, `phi(q, t) = (‖q - pivot(t)‖² - l²) / (2 l)` with the pivot at
height `b cos(w t)`. The minimal coordinate, the angle from hanging, has

    l θ̈ = -(g - b w² cos(w t)) sin θ,

and the upright pose is stable where `b² w² > 2 g l` (Kapitza, 1951).
"""

import casadi as ca

import mbcasadi as mb

from .energies import coordinates, lifted_mass, moving_mass

MASS = 0.5  # kg; chosen
LENGTH = 0.4  # m; chosen
STROKE = 0.03  # m, amplitude of the pivot; chosen
FREQUENCY = 120.0  # rad/s; chosen, so that the upright pose is stable


def system(stroke: float = STROKE, frequency: float = FREQUENCY) -> mb.System:
    """Return the pendulum as a `System` of two coordinates and one row that depends on time."""
    q, v = coordinates(2)
    t = ca.SX.sym("t")
    arm = q - pivot(t, stroke, frequency)
    return mb.from_lagrangian(
        q,
        v,
        kinetic=moving_mass(MASS, q, q, v),
        potential=lifted_mass(MASS, q[1]),
        phi=(ca.sumsqr(arm) - LENGTH**2) / (2 * LENGTH),
        t=t,
        name="driven_pendulum",
    )


def pivot(t: ca.SX, stroke: float = STROKE, frequency: float = FREQUENCY) -> ca.SX:
    """Return the pivot's place (2, 1), m, at time t, s."""
    return ca.vertcat(0, stroke * ca.cos(frequency * t))
