"""Coriolis matrix of a rigid tree, in one pass over what each joint carries.

For a particle at x with `ẋ = J v` the force `J̇ v dm` is what the motion demands, so

    C = ∫ Jᵀ J̇ dm,    h = C v + g,    Ṁ = C + Cᵀ

term by term, since `M = ∫ Jᵀ J dm`. No coordinates enter, so both laws hold for quaternions
too. Where v is the rate of q (hinges, slides) C holds the Christoffel symbols of M; it is the
body-level factorisation of S. Echeandia and P. M. Wensing, *Numerical methods to compute the
Coriolis matrix and Christoffel symbols for rigid-body systems* (2021), summed over subtrees.

A unit twist of a joint about the axis e moves what the joint carries by `J = e × r`, and
`J̇ = ė × r + e × ṙ`: hence the moments `∫ ṙ dm` and `∫ ṙ rᵀ dm` of `flow`. The entries with the
joints below come from two things carried outward: the wrench of `J̇` (rows), and what `J` makes
of the `J̇` of the joints below (columns).
"""

from dataclasses import dataclass

import casadi as ca

from mbcasadi.description import RigidTree
from mbcasadi.model.chain import WORLD, Chain, Link, chain_of
from mbcasadi.model.flow import Subtree, Travel, as_rows, subtrees_of, travels_of
from mbcasadi.model.motion import Wrench, on_axes
from mbcasadi.model.recursion import rows_times
from mbcasadi.spatial import (
    Mat3,
    Scalar,
    Step,
    Vec3,
    add,
    cross,
    outward,
    scale,
    transpose,
    wrench_outward,
)

UNIT: Mat3 = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def coriolis_matrix(tree: RigidTree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return C with `h = C v + g` and `Ṁ = C + Cᵀ`, to rounding.

    Armature has no part in it: that of joints and tendons is constant, and what an `Actuator`
    reflects through a moment that turns with q is not in `bias_force` either (MuJoCo leaves it
    out). With such an actuator, which no MJCF model gives, `h = C v + g` still holds and
    `Ṁ = C + Cᵀ` holds for M without its armature.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.

    Returns:
        (nv, nv), sparse like the tree; not symmetric.
    """
    chain = chain_of(tree)
    travels = travels_of(chain, q, v)
    carried, swung = subtrees_of(chain, travels, v)
    C = ca.SX(tree.nv, tree.nv)
    for j, link in enumerate(chain.links):
        travel = travels[j]
        for dof, demand in _demands(link, carried[j], travel.w):
            for row, value in on_axes(link, demand.wrench, travel.plain):
                C[row, dof] = value
        # The turn of a hinge about its own axis is done already: see `subtrees_of`.
        hinged = link.joint.kind == "hinge"
        subtree, w = (swung[j], travel.before) if hinged else (carried[j], travel.w)
        steps = travel.steps[: len(link.before)] if hinged else travel.steps
        for dof, demand in _demands(link, subtree, w):
            _meet_ancestors(chain, travels, link.parent, dof, demand.carried(steps), C)
    return ca.sparsify(C)


@dataclass(frozen=True)
class _Demand:
    """What the motion of one dof asks of the joints below, and they of it.

    With `J` of the dof, over all that it carries: `∫ J̇ dm` as the wrench; and as a form on
    the motion `α + ė × r + e × ṙ` of a joint below, `force · α + moment · ė + swing · e`.
    """

    wrench: Wrench
    force: Vec3
    moment: Vec3
    swing: Vec3

    def carried(self, steps: tuple[tuple[Step, Vec3], ...]) -> "_Demand":
        """Return it in the axes and about the origin that the steps start from."""
        wrench, force, moment, swing = self.wrench, self.force, self.moment, self.swing
        for step, rate in reversed(steps):
            swing = add(outward(step, swing), cross(rate, force))
            wrench = wrench_outward(step, *wrench)
            force, moment = wrench_outward(step, force, moment)
        return _Demand(wrench, force, moment, swing)


def _demands(link: Link, subtree: Subtree, w: Vec3) -> list[tuple[int, _Demand]]:
    """Return the demand of each dof of a link; a free joint's linear ones have none.

    Its linear velocity is along the world's axes, which do not move.
    """
    dof = link.joint.dof
    match link.joint.kind:
        case "hinge":
            return [(dof, _twist(subtree, w, 2))]
        case "slide":
            return [(dof, _push(subtree, w, 2))]
        case "ball":
            return [(dof + k, _twist(subtree, w, k)) for k in range(3)]
    return [(dof + 3 + k, _twist(subtree, w, k)) for k in range(3)]


def _twist(subtree: Subtree, w: Vec3, k: int) -> _Demand:
    """Return the demand of a unit twist about axis k of axes that turn with w.

    `∫ r × (ė × r + e × ṙ) dm = (E ω) × e + tr(D) e - D e` with `ė = ω × e`.
    """
    e, E = UNIT[k], as_rows(subtree.moments.row(i) for i in range(3))
    force, moment = subtree.moments.twist(k)
    grow = scale(subtree.D[0][0] + subtree.D[1][1] + subtree.D[2][2], e)
    wrench = (
        add(cross(w, force), cross(e, subtree.flow)),
        add(cross(rows_times(E, w), e), add(grow, scale(-1.0, transpose(subtree.D)[k]))),
    )
    swing = add(rows_times(E, cross(w, e)), add(grow, scale(-1.0, subtree.D[k])))
    return _Demand(wrench, force, moment, swing)


def _push(subtree: Subtree, w: Vec3, k: int) -> _Demand:
    """Return the demand of a unit shift along axis k of axes that turn with w."""
    e, s = UNIT[k], subtree.moments.first
    force, moment = subtree.moments.push(k)
    turning = cross(w, e)
    wrench = (scale(subtree.moments.mass, turning), cross(s, turning))
    return _Demand(wrench, force, moment, cross(add(cross(w, s), subtree.flow), e))


def _meet_ancestors(
    chain: Chain, travels: list[Travel], i: int, dof: int, demand: _Demand, C: ca.SX
) -> None:
    """Write the entries of one dof with link i and its ancestors; the demand is at link i."""
    while i != WORLD:
        link, travel = chain.links[i], travels[i]
        for row, value in on_axes(link, demand.wrench, travel.plain):
            C[row, dof] = value
        for column, value in _on_turning_axes(link, demand, travel.w):
            C[dof, column] = value
        demand = demand.carried(travel.steps)
        i = link.parent


def _on_turning_axes(link: Link, demand: _Demand, w: Vec3) -> list[tuple[int, Scalar]]:
    """Return the form of a demand on the motion of each dof of link, whose axes turn with w."""
    dof = link.joint.dof
    if link.joint.kind == "slide":
        return [(dof, cross(demand.force, w)[2])]
    turned = add(demand.swing, cross(demand.moment, w))  # moment · (ω × e) + swing · e
    match link.joint.kind:
        case "hinge":
            return [(dof, turned[2])]
        case "ball":
            return [(dof + k, turned[k]) for k in range(3)]
    return [(dof + 3 + k, turned[k]) for k in range(3)]
