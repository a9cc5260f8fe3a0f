"""A planar PRR arm whose tip slides on a level surface  [A10, section 5].

`q = (q1, q2, q3)`: height of the base above the surface, angle of link 2 from the horizontal,
angle of link 3 from link 2. `u` is the force at the base and the torques of both joints. One row:
the tip's height, `A = [1, l (c23 + c2), l c23]`.
"""

import casadi as ca

import mbcasadi as mb

from .energies import (
    GRAVITY,
    coordinates,
    lifted_bar,
    lifted_mass,
    moving_bar,
    moving_mass,
    rod_inertia,
    towards,
)

MASS = 5.0  # kg, of the base and of each link; A10, section 5
LENGTH = 1.0  # m, of each link; A10, section 5
STRAIGHT_DOWN = 1.5 * ca.pi  # rad, the last link's angle where theta2 is zero; A10, section 5
START = (1.4, -0.6435011087932844, -ca.pi / 2)  # on the surface; two 3-4-5 triangles


def system(mass: float = MASS, length: float = LENGTH, gravity: float = GRAVITY) -> mb.System:
    """Return the arm as a `System` of three coordinates and one row."""
    q, v = coordinates(3)
    base, elbow, tip = points(q, length)
    kinetic, potential = moving_mass(mass, base, q, v), lifted_mass(mass, base[1], gravity)
    inertia = rod_inertia(mass, length)
    for ends, angle in (((base, elbow), q[1]), ((elbow, tip), q[1] + q[2])):
        kinetic += moving_bar(mass, inertia, ends, angle, q, v)
        potential += lifted_bar(mass, ends, gravity)
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=potential, B=ca.DM.eye(3), phi=tip[1], name="prr_arm"
    )


def points(q: ca.SX, length: float = LENGTH) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return base, elbow and tip, each (2, 1): horizontal and vertical, m."""
    base = ca.vertcat(0, q[0])
    elbow = base + length * towards(q[1])
    return base, elbow, elbow + length * towards(q[1] + q[2])


def minimal_coordinates(q: ca.SX, length: float = LENGTH) -> ca.SX:
    """Return the paper's theta (2, 1): the tip's horizontal place, m, the last link's lean, rad."""
    return ca.vertcat(points(q, length)[2][0], q[1] + q[2] - STRAIGHT_DOWN)


def to_mjcf(q: ca.SX) -> ca.SX:
    """Return (q1, q2, q3, tip): the file adds the carriage under the tip."""
    return ca.vertcat(q, points(q)[2][0])
