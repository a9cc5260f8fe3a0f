"""A planar robot of five bars with two motors at the base.

`q` are the angles of the bars from the horizontal: left proximal and distal, right proximal and
distal. Two rows: the distal bars meet. Dimensions, masses, damping and rotor inertia are those of
mujoco_models/five_bar.xml; bars are solid capsules.
"""

import casadi as ca

import mbcasadi as mb

from .energies import capsule_inertia, coordinates, lifted_bar, moving_bar, towards, turning_body

PIVOT = 0.1  # m, of each proximal bar from the middle
LENGTHS = (0.5, 0.4)  # m, proximal and distal
MASSES = (0.8, 0.5)  # kg
RADIUS = 0.015  # m
ROTOR = 0.005  # kg m², at each proximal joint
DAMPING = (0.05, 0.01)  # N m s, at proximal and distal joints
START = (
    float(ca.atan2(0.48, -0.14)),
    float(ca.atan2(0.32, 0.24)),
    float(ca.atan2(0.48, 0.14)),
    float(ca.atan2(0.32, -0.24)),
)  # 7-24-25 and 3-4-5 triangles


def system() -> mb.System:
    """Return the robot as a `System` of four coordinates and two rows."""
    q, v = coordinates(4)
    kinetic, potential, dissipation, tips = ca.SX(0), ca.SX(0), ca.SX(0), []
    for side, first in ((-1, 0), (1, 2)):
        base = ca.vertcat(side * PIVOT, 0)
        elbow = base + LENGTHS[0] * towards(q[first])
        tips.append(elbow + LENGTHS[1] * towards(q[first + 1]))
        kinetic += turning_body(ROTOR, q[first], q, v)
        for k, ends in enumerate(((base, elbow), (elbow, tips[-1]))):
            inertia, _ = capsule_inertia(MASSES[k], LENGTHS[k], RADIUS)
            kinetic += moving_bar(MASSES[k], inertia, ends, q[first + k], q, v)
            potential += lifted_bar(MASSES[k], ends)
        rates = (v[first], v[first + 1] - v[first])
        dissipation += sum(0.5 * d * rate**2 for d, rate in zip(DAMPING, rates, strict=True))
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=potential,
        force=-ca.gradient(dissipation, v),
        B=[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        phi=tips[0] - tips[1],
        name="five_bar",
    )


def to_mjcf(q: ca.SX) -> ca.SX:
    """Return the joint angles of the file: zero at `START`, the distal ones relative."""
    turned = q - ca.DM(START)
    return ca.vertcat(turned[0], turned[1] - turned[0], turned[2], turned[3] - turned[2])
