"""Momentum of all bodies that can move: linear, and angular about their centre of mass.

With `∫ ṙ dm` and `D = ∫ ṙ rᵀ dm` of all that a link carries, summed from the leaves to the world
(`mass_flow`), the linear momentum is `∫ ṙ dm`, and the angular one about the world's origin,
`∫ r × ṙ dm`, is the axial vector of D. Armature has no part in either.
"""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.description import RigidTree
from mbcasadi.model.chain import WORLD, Chain, Link, chain_of, moving_moments
from mbcasadi.model.configuration import tangent_rate
from mbcasadi.model.mass_flow import Subtree, joint_spin
from mbcasadi.model.motion import steps_of
from mbcasadi.spatial import (
    ZERO3,
    Moments,
    Move,
    Step,
    Vec3,
    cross,
    entries,
    scale,
    stack,
    subtract,
)


def momentum(tree: RigidTree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the momentum (6, 1): linear, kg m/s, above angular, kg m²/s, world axes.

    The angular momentum is that about the centre of mass.

    Args:
        tree: the mechanism.
        q, v: (nq, 1), (nv, 1) state.

    Raises:
        ProblemError: no body that can move has mass.
    """
    chain = chain_of(tree)
    return _about_center(flow_in_world(chain, moving_moments(chain), q, v))


def flow_in_world(chain: Chain, moments: Sequence[Moments], q: ca.SX, v: ca.SX) -> Subtree:
    """Return mass moments and their flow of all links together, world axes.

    Args:
        chain: the links.
        moments: of each link, in its axes.
        q, v: (nq, 1), (nv, 1) state.
    """
    carried, whole = [Subtree(own) for own in moments], Subtree(Moments())
    for i in reversed(range(len(chain.links))):
        link = chain.links[i]
        subtree = carried[i].in_rotating_axes(joint_spin(link, v))
        for step in reversed(steps_of(link, q)):
            subtree = subtree.to_parent(step, _rate(link, step, v))
        if link.parent == WORLD:
            whole = whole + subtree
        else:
            carried[link.parent] = carried[link.parent] + subtree
    return whole


def momentum_fun(tree: RigidTree, q: ca.SX) -> ca.Function:
    """Return (q, v) → (momentum, J, bias): `momentum = J v`, and `bias = J̇ v`.

    J (6, nv) is the centroidal momentum matrix; its rows are those of `momentum`.

    Args:
        tree: the mechanism.
        q: (nq, 1) symbols of the configuration, those in the tree's numbers included.

    Raises:
        ProblemError: no body that can move has mass.
    """
    v = ca.SX.sym("v", tree.nv)
    total = momentum(tree, q, v)
    J = ca.jacobian(total, v)
    bias = tangent_rate(tree, total, q, v)
    outputs = [ca.densify(part) for part in (total, J, bias)]
    return ca.Function("momentum", [q, v], outputs, ["q", "v"], ["momentum", "J", "bias"])


def _rate(link: Link, step: Step, v: ca.SX) -> Vec3:
    """Return the rate of a shift by a joint, in the axes of the shift, m/s."""
    kind, dof = link.joint.kind, link.joint.dof
    if not isinstance(step, Move):
        return ZERO3
    if kind == "free":
        return entries(v, dof)
    is_joint = kind == "slide" and not any(step is constant for constant in link.before)
    return (0.0, 0.0, v[dof]) if is_joint else ZERO3


def _about_center(whole: Subtree) -> ca.SX:
    """Return linear momentum above angular momentum about the centre of mass."""
    center = scale(1 / whole.moments.mass, whole.moments.first)
    return stack(whole.flow, angular_momentum(whole, center))


def angular_momentum(whole: Subtree, point: Vec3) -> Vec3:
    """Return the angular momentum about a fixed point of the world, kg m²/s, world axes."""
    D = whole.D
    about_origin = (D[2][1] - D[1][2], D[0][2] - D[2][0], D[1][0] - D[0][1])
    return subtract(about_origin, cross(point, whole.flow))
