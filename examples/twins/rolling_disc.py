"""A thin disc that rolls on a level floor without slipping, as a coin does.

`q = (x, y, heading, lean, spin)`: the point of contact, the direction of travel, the lean from
upright towards the left, and the rotation of the disc about its own axis. By two Pfaffian rows
the contact point advances along the heading as much as the rim unrolls:
`(ẋ, ẏ) = r spiṅ (cos heading, sin heading)`. Five coordinates, three freedoms of velocity.

Steady rolling on a circle, at heading rate Ω and axial rate w = spiṅ - Ω sin(lean), has

    m g r sin(lean) = Ω cos(lean) (J Ω sin(lean) + (C + m r²) w)

with the moments `J = m r² / 4` about a diameter and `C = m r² / 2` about the axis.
"""

import casadi as ca

import mbcasadi as mb

from .energies import GRAVITY, coordinates, lifted_mass, moving_mass, towards

MASS = 0.5  # kg; chosen
RADIUS = 0.1  # m; chosen
DIAMETRAL = MASS * RADIUS**2 / 4  # kg m²
AXIAL = MASS * RADIUS**2 / 2  # kg m²


def system(gravity: float = GRAVITY) -> mb.System:
    """Return the disc as a `System` of five coordinates and two rows for velocities."""
    q, v = coordinates(5)
    heading, lean = q[2], q[3]
    along, left = towards(heading), towards(heading + ca.pi / 2)
    centre = ca.vertcat(q[:2] + RADIUS * ca.sin(lean) * left, RADIUS * ca.cos(lean))
    axial_rate = v[4] - v[2] * ca.sin(lean)
    kinetic = moving_mass(MASS, centre, q, v) + AXIAL / 2 * axial_rate**2
    kinetic += DIAMETRAL / 2 * (v[3] ** 2 + (v[2] * ca.cos(lean)) ** 2)
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=lifted_mass(MASS, centre[2], gravity),
        A=ca.horzcat(ca.SX.eye(2), ca.SX.zeros(2, 2), -RADIUS * along),
        name="rolling_disc",
    )
