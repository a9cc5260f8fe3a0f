"""Two double pendulums, one the mirror image of the other, that latch where their tips meet.

`q`: angles of the left upper and lower link, then of the right ones, from the horizontal. Open,
the tree has four freedoms; latched, two rows leave a five-bar loop with two. From `APART` at rest
the tips meet on the middle plane by symmetry, with opposite speeds that the latch removes.
Dimensions are those of mujoco_models/topology_switch.xml.
"""

import casadi as ca

import mbcasadi as mb

from .energies import GRAVITY, coordinates, lifted_bar, moving_bar, rod_inertia, towards

PIVOT = 0.28  # m, of each pendulum from the middle plane
LENGTHS = (0.3, 0.26)  # m, upper and lower
MASSES = (0.5, 0.3)  # kg
START = (
    float(ca.atan2(-0.24, 0.18)),
    float(ca.atan2(-0.24, 0.1)),
    float(ca.atan2(-0.24, -0.18)),
    float(ca.atan2(-0.24, -0.1)),
)  # tips together; 3-4-5 and 5-12-13 triangles
SWUNG_OUT = -2.4  # rad, angle of the left links where the swing begins
APART = (SWUNG_OUT, SWUNG_OUT, -ca.pi - SWUNG_OUT, -ca.pi - SWUNG_OUT)


def system(closed: bool = True, gravity: float = GRAVITY) -> mb.System:
    """Return the pendulums as a `System` of four coordinates, with two rows where `closed`."""
    q, v = coordinates(4)
    kinetic, potential, joints = ca.SX(0), ca.SX(0), points(q)
    for k, (a, b) in enumerate(((0, 1), (1, 2), (3, 4), (4, 5))):
        mass, length = MASSES[k % 2], LENGTHS[k % 2]
        ends = joints[a], joints[b]
        kinetic += moving_bar(mass, rod_inertia(mass, length), ends, q[k], q, v)
        potential += lifted_bar(mass, ends, gravity)
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=potential,
        B=[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        phi=joints[2] - joints[5] if closed else None,
        name="topology_switch",
    )


def points(q: ca.SX) -> list[ca.SX]:
    """Return pivot, elbow and tip of the left pendulum, then of the right one, each (2, 1), m."""
    joints = []
    for side, first in ((-1, 0), (1, 2)):
        joints.append(ca.SX(ca.DM([side * PIVOT, 0])))
        for k in range(2):
            joints.append(joints[-1] + LENGTHS[k] * towards(q[first + k]))
    return joints


def to_mjcf(q: ca.SX) -> ca.SX:
    """Return the joint angles of the file: lower links relative to the upper ones."""
    return ca.vertcat(q[0], q[1] - q[0], q[2], q[3] - q[2])
