"""Chaplygin's sleigh: a body on ice that a blade keeps from sliding sideways.

`q = (x, y, theta)`: the blade's position and its heading; the mass centre is `OFFSET` ahead of the
blade. One Pfaffian row that no `phi(q)` has as its derivative: `-sin(theta) ẋ + cos(theta) ẏ = 0`.
With u the speed along the blade and ω the rate of turn,

    u̇ = a ω²,    (I + m a²) ω̇ = -m a u ω

(Neimark and Fufaev, Dynamics of Nonholonomic Systems, 1972). Energy is constant, yet every motion
tends to a straight one, mass centre first. With `offset=0` and `slope` the sleigh is a knife edge
on an incline: released with a spin ω it does not slide down but oscillates between two heights,
`x = g sin(slope) / (2 ω²) sin²(ω t)`.
"""

import casadi as ca

import mbcasadi as mb

from .energies import GRAVITY, coordinates, moving_mass, towards, turning_body

MASS = 2.0  # kg; chosen
INERTIA = 0.15  # kg m², about the mass centre; chosen
OFFSET = 0.3  # m; chosen


def system(
    offset: float = OFFSET, slope: float = 0.0, mass: float = MASS, inertia: float = INERTIA
) -> mb.System:
    """Return the sleigh as a `System` of three coordinates and one row for velocities.

    `slope`, rad, inclines the ice: x points down it. `u` is the force along the blade and a torque.
    """
    q, v = coordinates(3)
    heading = towards(q[2])
    centre = q[:2] + offset * heading
    return mb.from_lagrangian(
        q,
        v,
        kinetic=moving_mass(mass, centre, q, v) + turning_body(inertia, q[2], q, v),
        potential=-mass * GRAVITY * ca.sin(slope) * centre[0],
        B=ca.diagcat(heading, 1),
        A=ca.horzcat(-ca.sin(q[2]), ca.cos(q[2]), 0),
        name="chaplygin_sleigh",
    )
