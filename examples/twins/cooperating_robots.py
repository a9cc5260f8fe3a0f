"""Two planar three-link robots that hold one bar: five links in a row  [L15, section V].

`q = (theta1 ... theta5)` are the links' angles from the horizontal, each by itself. `B` is (70):
six torques for three freedoms. Two rows, the position of the far end (60). The paper's (51), (58)
and (64) have misprints; a Lagrangian needs none of them.
"""

from itertools import pairwise

import casadi as ca
import numpy as np

import mbcasadi as mb

from .energies import coordinates, lifted_bar, moving_bar, towards

MASS = 1.0  # kg, of each link; L15, section VI
INERTIA = 1.0  # kg m², of each link about its middle; L15, section VI
LENGTH = 1.0  # m, of each link; L15, section VI
GRAVITY = 9.8  # m/s²; L15, section VI
SPAN = 3.0  # m between the pivots, in link lengths; follows from (64), not printed
B = [
    [1.0, -1.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, 1.0, -1.0, 0.0, 0.0, 0.0],
    [0.0, 0.0, 1.0, 1.0, 0.0, 0.0],
    [0.0, 0.0, 0.0, -1.0, 1.0, 0.0],
    [0.0, 0.0, 0.0, 0.0, -1.0, 1.0],
]  # L15, eq. (70)
START = tuple(np.deg2rad((60.0, -60.0, 0.0, 60.0, -60.0)))  # the bar at its lowest height


def system(gravity: float = GRAVITY) -> mb.System:
    """Return the robots and their bar as a `System` of five coordinates and two rows."""
    q, v = coordinates(5)
    joints = points(q)
    kinetic, potential = ca.SX(0), ca.SX(0)
    for i, ends in enumerate(pairwise(joints)):
        kinetic += moving_bar(MASS, INERTIA, ends, q[i], q, v)
        potential += lifted_bar(MASS, ends, gravity)
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=potential,
        B=B,
        phi=joints[-1] - ca.vertcat(SPAN, 0),
        name="cooperating_robots",
    )


def points(q: ca.SX) -> list[ca.SX]:
    """Return the six joints from the left pivot to the right one, each (2, 1), m."""
    joints = [ca.SX.zeros(2)]
    for i in range(5):
        joints.append(joints[-1] + LENGTH * towards(q[i]))
    return joints


def bar_pose(q: ca.SX) -> ca.SX:
    """Return (x3, y3, theta3): middle of the bar, m, and its angle, rad  [L15, eq. 65]."""
    joints = points(q)
    return ca.vertcat((joints[2] + joints[3]) / 2, q[2])


def to_mjcf(q: ca.SX) -> ca.SX:
    """Return the joint angles of cooperating_arms.xml: each link's from the one before."""
    return ca.vertcat(q[0], q[1:] - q[:-1])
