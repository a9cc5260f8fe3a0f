"""A particle on a circle in the vertical plane  [A05, section 5.4].

`q` is the particle's position `(q1, q2)` in the plane, `u` the external force. One row:
`phi = ‖q‖ - rho`. The centripetal acceleration is `-A⁺ c = -‖v‖²/rho` along `q`.
"""

import casadi as ca

import mbcasadi as mb

from .energies import GRAVITY, coordinates, lifted_mass, moving_mass

MASS = 1.0  # kg; the paper has symbols only
RADIUS = 1.0  # m; the paper has symbols only
START = (0.6, 0.8)  # a 3-4-5 triangle


def system(mass: float = MASS, radius: float = RADIUS, gravity: float = GRAVITY) -> mb.System:
    """Return the particle as a `System` of two coordinates and one row."""
    q, v = coordinates(2)
    return mb.from_lagrangian(
        q,
        v,
        kinetic=moving_mass(mass, q, q, v),
        potential=lifted_mass(mass, q[1], gravity),
        B=ca.DM.eye(2),
        phi=ca.norm_2(q) - radius,
        name="particle_on_circle",
    )


def to_mjcf(q: ca.SX) -> ca.SX:
    """Return (q1, q2, theta): the file adds the angle of the rod that leads the particle."""
    return ca.vertcat(q, ca.atan2(q[1], q[0]))
