"""A planar parallel robot 3-RRR: a platform on three legs, in the horizontal plane.

`q`: for each leg, the angles of its proximal and distal link in the leg's own frame (the first
one's, turned by 0, 120 and 240 degrees), then the platform's place x, y and angle. Six rows: each
leg ends at its corner of the platform. `u` are the torques at the three feet. Dimensions and
masses are those of mujoco_models/planar_3rrr.xml.
"""

import casadi as ca

import mbcasadi as mb

from .energies import coordinates, moving_bar, moving_mass, rod_inertia, towards, turning_body

FOOT = 0.4  # m, radius of the circle of the feet
CORNER = 0.12  # m, radius of the platform's corners
LENGTHS = (0.3, 0.26)  # m, proximal and distal
MASSES = (0.5, 0.3)  # kg
PLATFORM_MASS = 1.0  # kg
PLATFORM_INERTIA = 0.006  # kg m²
LEG_START = (float(ca.atan2(0.24, -0.18)), float(ca.atan2(-0.24, -0.1)) + 2 * ca.pi)
START = (*LEG_START, *LEG_START, *LEG_START, 0.0, 0.0, 0.0)


def system() -> mb.System:
    """Return the robot as a `System` of nine coordinates and six rows."""
    q, v = coordinates(9)
    place, angle = q[6:8], q[8]
    kinetic = moving_mass(PLATFORM_MASS, place, q, v)
    kinetic += turning_body(PLATFORM_INERTIA, angle, q, v)
    rows, B = [], ca.DM.zeros(9, 3)
    for leg in range(3):
        turn = 2 * ca.pi * leg / 3
        joints = [FOOT * towards(turn)]
        for k in range(2):
            link = q[2 * leg + k]
            joints.append(joints[-1] + LENGTHS[k] * towards(turn + link))
            inertia = rod_inertia(MASSES[k], LENGTHS[k])
            kinetic += moving_bar(MASSES[k], inertia, (joints[-2], joints[-1]), link, q, v)
        rows.append(joints[-1] - place - CORNER * towards(turn + angle))
        B[2 * leg, leg] = 1
    return mb.from_lagrangian(q, v, kinetic=kinetic, B=B, phi=ca.vertcat(*rows), name="planar_3rrr")


def to_mjcf(q: ca.SX) -> ca.SX:
    """Return the coordinates of the file: distal angles relative to the proximal links."""
    legs = [ca.vertcat(q[2 * k], q[2 * k + 1] - q[2 * k]) for k in range(3)]
    return ca.vertcat(*legs, q[6:])
