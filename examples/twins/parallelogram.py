"""A beam on three parallel cranks, one of them redundant, hanging in the vertical plane.

`q = (crank1, beam, crank2, crank3)`, each angle from the horizontal. Four rows: cranks 2 and 3
end at the beam. Their rank is 3: the beam moves because all cranks are equal. At the flat poses,
crank angles 0 or π, the rank is 2. Dimensions are those of mujoco_models/parallelogram.xml.

The beam never turns, so the mechanism is a pendulum:
`(n m l²/3 + M l²) θ̈ = -(n m/2 + M) g l cos θ` for n cranks.
"""

import casadi as ca

import mbcasadi as mb

from .energies import GRAVITY, coordinates, lifted_bar, moving_bar, rod_inertia, towards

CRANK = 0.25  # m
PITCH = 0.3  # m between neighbouring pivots
CRANK_MASS = 0.3  # kg, of each
BEAM_MASS = 1.0  # kg
HANGING = float(ca.atan2(-0.2, 0.15))  # rad, authored angle of the cranks; a 3-4-5 triangle
START = (HANGING, 0.0, HANGING, HANGING)


def system(gravity: float = GRAVITY) -> mb.System:
    """Return the swing as a `System` of four coordinates and four rows."""
    q, v = coordinates(4)
    beam, cranks = q[1], (q[0], q[2], q[3])
    pivots = [ca.vertcat(k * PITCH, 0) for k in range(3)]
    tips = [pivot + CRANK * towards(angle) for pivot, angle in zip(pivots, cranks, strict=True)]
    carried = (tips[0], tips[0] + 2 * PITCH * towards(beam))
    kinetic = moving_bar(BEAM_MASS, rod_inertia(BEAM_MASS, 2 * PITCH), carried, beam, q, v)
    potential = lifted_bar(BEAM_MASS, carried, gravity)
    for ends in zip(pivots, tips, cranks, strict=True):
        inertia = rod_inertia(CRANK_MASS, CRANK)
        kinetic += moving_bar(CRANK_MASS, inertia, ends[:2], ends[2], q, v)
        potential += lifted_bar(CRANK_MASS, ends[:2], gravity)
    rows = [tips[k] - tips[0] - k * PITCH * towards(beam) for k in (1, 2)]
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=potential,
        B=[[1.0], [0.0], [0.0], [0.0]],
        phi=ca.vertcat(*rows),
        name="parallelogram",
    )


def to_mjcf(q: ca.SX) -> ca.SX:
    """Return (crank1, coupler, crank2, crank3): the beam is carried by the first crank."""
    return ca.vertcat(q[0], q[1] - (q[0] - HANGING), q[2:])
