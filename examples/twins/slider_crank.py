"""A slider-crank with equal links and point masses at their ends  [A05, section 8].

`q = (q1, q2)`: angle of the crank from the slider's line, angle of the rod from the crank. `u` is
the torque at the crank. One row, the height of the slider: `A = l [c1 + c12, c12]`. Where the
crank is perpendicular to the line (q1 an odd multiple of π/2, q2 of π) the row is zero: the
mechanism has two freedoms there, and two branches meet. The mass matrix is (68): the masses are
points at the link ends, not uniform links (corrected).
"""

import casadi as ca

import mbcasadi as mb

from .energies import GRAVITY, coordinates, lifted_mass, moving_mass, towards, turning_body

MASS = 1.0  # kg, at the end of each link; the paper has symbols only
LENGTH = 1.0  # m, of each link; the paper has symbols only
START = (0.9272952180016122, -1.8545904360032244)  # slider at 1.2 m, a 3-4-5 triangle
MJCF_INERTIA = 1e-9  # kg m², of each link of slider_crank.xml; MuJoCo wants one


def system(
    mass: float = MASS, length: float = LENGTH, gravity: float = GRAVITY, link_inertia: float = 0.0
) -> mb.System:
    """Return the slider-crank as a `System` of two coordinates and one row.

    `link_inertia`, kg m², is added to each link about its end; the paper has none.
    """
    q, v = coordinates(2)
    pin, slider = points(q, length)
    kinetic = moving_mass(mass, pin, q, v) + moving_mass(mass, slider, q, v)
    kinetic += turning_body(link_inertia, q[0], q, v)
    kinetic += turning_body(link_inertia, q[0] + q[1], q, v)
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=lifted_mass(mass, pin[1] + slider[1], gravity),
        B=[[1.0], [0.0]],
        phi=slider[1],
        name="slider_crank",
    )


def points(q: ca.SX, length: float = LENGTH) -> tuple[ca.SX, ca.SX]:
    """Return the pin and the slider, each (2, 1): along the slider's line and above it, m."""
    pin = length * towards(q[0])
    return pin, pin + length * towards(q[0] + q[1])


def to_mjcf(q: ca.SX) -> ca.SX:
    """Return (crank, slider, rod): the file opens the loop at the pin, not at the slider."""
    return ca.vertcat(q[0], points(q)[1][0], -(q[0] + q[1]))
