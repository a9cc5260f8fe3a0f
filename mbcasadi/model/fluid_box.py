"""Forces of a medium on a body that counts as the box with its mass and inertia.

Each face takes a force along its normal. See MuJoCo's documentation, "Fluid forces", inertia model.
"""

import math

import casadi as ca

from mbcasadi.description import Fluid, FluidBox
from mbcasadi.spatial import Scalar, Vec3

LEAST_MOMENT = 1e-15
"""MuJoCo's `mjMINVAL`, kg m²: a box whose sides vanish keeps this thickness."""


def box_wrench(medium: Fluid, box: FluidBox, mass: float, w: Vec3, u: Vec3) -> tuple[Vec3, Vec3]:
    """Return force, N, and moment, N m, about the centre of mass, in principal axes.

    `F_i = -(3 π d η + ½ ρ s_j s_k |u_i|) u_i`,
    `N_i = -(π d³ η + ρ s_i (s_j⁴ + s_k⁴) |w_i| / 64) w_i`, with sides s and mean side d.

    Args:
        medium: density ρ and viscosity η.
        box: principal moments of inertia.
        mass: of the body, kg.
        w: angular velocity, rad/s, principal axes.
        u: velocity of the centre of mass relative to the medium, m/s, principal axes.
    """
    rho, eta = medium.density, medium.viscosity
    s = box_sides(box, mass)
    mean = (s[0] + s[1] + s[2]) / 3.0
    linear, angular = 3.0 * math.pi * mean * eta, math.pi * mean**3 * eta
    force, moment = [], []
    for i in range(3):
        a, b = s[(i + 1) % 3], s[(i + 2) % 3]
        force.append(-(linear + 0.5 * rho * a * b * ca.fabs(u[i])) * u[i])
        moment.append(-(angular + rho * s[i] * (a**4 + b**4) / 64.0 * ca.fabs(w[i])) * w[i])
    return (force[0], force[1], force[2]), (moment[0], moment[1], moment[2])


def box_sides(box: FluidBox, mass: float) -> Vec3:
    """Return the sides `s_i = (6 (I_j + I_k - I_i) / m)^½`, m, of the box with this inertia."""
    x, y, z = box.moments

    def side(moment: Scalar) -> Scalar:
        return ca.sqrt(6.0 * ca.fmax(LEAST_MOMENT, moment) / mass)

    return (side(y + z - x), side(x + z - y), side(x + y - z))
