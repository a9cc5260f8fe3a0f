"""The capture point, and how far inside the support it is.

A robot whose centre of mass c is at a constant height h over its feet falls like the linear
inverted pendulum `c̈ = ω² (c - p)`, ω² = g/h, about its centre of pressure p. The capture point

    ξ = c + ċ/ω,   ξ̇ = ω (ξ - p)

is where p has to be for the robot to come to rest above it. p stays inside the convex hull of the
feet that stand: while ξ is inside it, the robot can stop without a step; outside, it has to step
(Pratt et al., Capture Point, Humanoids 2006; Hof, Human Movement Science 27, 2008).
"""

from itertools import permutations

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import MASK_ON
from mbcasadi.shapes import require_identifier, require_whole
from mbcasadi.system import System
from mbcasadi.system.parametric import takes_parameters

LEAST_HEIGHT = 0.01  # of the centre of mass above its feet, m, below which ω stays
OUTSIDE = 1e3  # m, of a point from the support of no feet
APART = 1e-9  # m, below which two feet are one point


@checked
@takes_parameters
def capture_point(system: System, *, name: str = "capture_point") -> ca.Function:
    """Return (q, v, height) → (xi, omega): the capture point (2,), m, and ω, 1/s.

    `height` is that of the ground, m. Gravity points along -z.

    Args:
        system: read from a model.
        name: a C identifier.

    Raises:
        ProblemError: a system of equations, or gravity that is not along -z.
    """
    require_identifier("name", name)
    if system.tree is None:
        raise ProblemError(f"'{system.name}' is given by equations; expected a model that was read")
    gravity = np.asarray(system.tree.gravity, dtype=float)
    if not gravity[2] < 0 or np.any(gravity[:2]):
        raise ProblemError(f"gravity = {gravity}; expected one along -z for a capture point")
    q, v, height = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv), ca.SX.sym("height")
    centre, jacobian, _ = system.center_of_mass(q, v)
    omega = ca.sqrt(-gravity[2] / ca.fmax(centre[2] - height, LEAST_HEIGHT))
    xi = centre[:2] + (jacobian @ v)[:2] / omega
    outputs = [ca.densify(xi), omega]
    return ca.Function(name, [q, v, height], outputs, ["q", "v", "height"], ["xi", "omega"])


@checked
def support_margin(feet: int, *, name: str = "support_margin") -> ca.Function:
    """Return (places, on, point) → (margin): how far a point is inside the feet's convex hull, m.

    Positive inside: the distance to the nearest edge. Negative outside: that to the line of the
    edge that is farthest. Of two feet the hull is a line, of one a point, always left; without a
    foot the margin is -1000 m. `places` is (2, feet), `on` one for each foot that stands.

    An ordered pair of feet is an edge where all others are on its left.

    Args:
        feet: their number.
        name: a C identifier.
    """
    require_whole(1, feet=feet)
    require_identifier("name", name)
    places, on = ca.SX.sym("places", 2, feet), ca.SX.sym("on", feet)
    point, stands = ca.SX.sym("point", 2), [on[i] > MASK_ON for i in range(feet)]
    nearest = ca.SX(OUTSIDE)
    for i in range(feet):
        gap = ca.norm_2(point - places[:, i])
        nearest = ca.if_else(stands[i], ca.fmin(nearest, gap), nearest)
    margin = ca.SX(OUTSIDE)
    for i, j in permutations(range(feet), 2):
        way = places[:, j] - places[:, i]
        length = ca.norm_2(way)
        is_edge = ca.logic_and(ca.logic_and(stands[i], stands[j]), length > APART)
        for k in set(range(feet)) - {i, j}:
            left = _left_of(way, places[:, k] - places[:, i]) >= -APART * length
            is_edge = ca.logic_and(is_edge, ca.logic_or(ca.logic_not(stands[k]), left))
        inside = _left_of(way, point - places[:, i]) / ca.fmax(length, APART)
        margin = ca.if_else(is_edge, ca.fmin(margin, inside), margin)
    margin = ca.if_else(margin < OUTSIDE, margin, -nearest)
    return ca.Function(name, [places, on, point], [margin], ["places", "on", "point"], ["margin"])


def _left_of(way: ca.SX, other: ca.SX) -> ca.SX:
    """Return the vertical component of `way × other`, positive on the left."""
    return way[0] * other[1] - way[1] * other[0]
