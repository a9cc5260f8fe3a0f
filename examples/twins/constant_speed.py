"""A particle in a force field that keeps its speed: the isokinetic constraint.

`q = (x, y)`, the potential is a spring to the origin, and the row `psi = (‖v‖² - s²) / 2 = 0` is
quadratic in the velocity. By Gauss's principle the constraint force is along the velocity,

    m a = f - (f · v) v / ‖v‖²

(Evans and others, Physical Review A 28, 1983). It does work: the energy is not constant.
"""

import casadi as ca

import mbcasadi as mb

from .energies import coordinates, moving_mass

MASS = 0.7  # kg; chosen
STIFFNESS = 3.0  # N/m; chosen
SPEED = 1.2  # m/s; chosen


def system(speed: float = SPEED) -> mb.System:
    """Return the particle as a `System` of two coordinates and one row quadratic in v."""
    q, v = coordinates(2)
    return mb.from_lagrangian(
        q,
        v,
        kinetic=moving_mass(MASS, q, q, v),
        potential=STIFFNESS / 2 * ca.sumsqr(q),
        B=ca.DM.eye(2),
        psi=(ca.sumsqr(v) - speed**2) / 2,
        name="constant_speed",
    )
