"""A heavy top in the four Euler parameters of its attitude: a singular mass matrix.

`q = p` is a unit quaternion (w, x, y, z), one row `pᵀp - 1 = 0`. With `ω = 2 G(p) ṗ` in body axes
the inertia is `M = 4 Gᵀ I G`: positive semidefinite, `M p = 0`, and positive definite on the null
space of `A = 2 pᵀ`. No coordinate singularity; A16 and A05's `M''_c` are meant for this case, and
formulations that invert M do not apply.

`u` is a torque in body axes: the generalised force is `2 Gᵀ u`.
"""

import casadi as ca

import mbcasadi as mb

from .energies import GRAVITY, coordinates

MASS = 1.2  # kg; chosen
INERTIA = (0.05, 0.06, 0.02)  # kg m², about the fixed point, in body axes; chosen
CENTRE = (0.01, -0.02, 0.15)  # m, mass centre from the fixed point, in body axes; chosen
START = (1.0, 0.0, 0.0, 0.0)


def system(gravity: float = GRAVITY) -> mb.System:
    """Return the top as a `System` of four coordinates and one row; its M has rank 3."""
    p, v = coordinates(4)
    rate = 2 * body_rates(p) @ v
    return mb.from_lagrangian(
        p,
        v,
        kinetic=0.5 * ca.dot(ca.DM(INERTIA), rate**2),
        potential=MASS * gravity * ca.dot(upwards(p), ca.DM(CENTRE)),
        B=2 * body_rates(p).T,
        phi=ca.sumsqr(p) - 1,
        name="heavy_top",
    )


def body_rates(p: ca.SX) -> ca.SX:
    """Return G (3, 4) of `ω = 2 G(p) ṗ`, rad/s in body axes; `G p = 0`."""
    w, x, y, z = ca.vertsplit(p)
    return ca.blockcat([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])


def upwards(p: ca.SX) -> ca.SX:
    """Return the vertical in body axes, (3, 1), where p is a unit quaternion."""
    w, x, y, z = ca.vertsplit(p)
    return ca.vertcat(2 * (x * z - w * y), 2 * (y * z + w * x), w**2 - x**2 - y**2 + z**2)
