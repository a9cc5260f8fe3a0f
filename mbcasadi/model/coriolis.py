"""Coriolis matrix of a rigid tree, in one pass over what each joint carries.

For a particle at x with `ẋ = J v` the motion requires the force `J̇ v dm`, so

    C = ∫ Jᵀ J̇ dm,    h = C v + g,    Ṁ = C + Cᵀ

term by term, since `M = ∫ Jᵀ J dm`. No coordinates enter, so both laws hold for quaternions
too. Where v is the rate of q (hinges, slides) C holds the Christoffel symbols of M; it is the
body-level factorisation of S. Echeandia and P. M. Wensing, *Numerical methods to compute the
Coriolis matrix and Christoffel symbols for rigid-body systems* (2021), summed over subtrees.

A unit twist of a joint about the axis e moves what the joint carries by `J = e × r`, and
`J̇ = ė × r + e × ṙ`: hence the moments `∫ ṙ dm` and `∫ ṙ rᵀ dm` of `flow`. The entries with the
joints below come from two quantities that are transformed towards the root: the wrench of `J̇`
(rows), and the linear form of `J` on the `J̇` of the joints below (columns).
"""

import casadi as ca

from mbcasadi.description import RigidTree
from mbcasadi.model.chain import WORLD, Chain, chain_of
from mbcasadi.model.inertial_coupling import InertialCoupling, couplings, on_turning_axes
from mbcasadi.model.mass_flow import Travel, carried_subtrees, link_travels
from mbcasadi.model.motion import wrench_on_dofs
from mbcasadi.model.tendon_armature import tendon_coriolis


def coriolis_matrix(tree: RigidTree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return C with `h = C v + g` and `Ṁ = C + Cᵀ`, to rounding.

    Armature of joints and fixed tendons is constant and has no part in it; that of spatial tendons
    has (`tendon_armature` says what holds across branches). What an `Actuator` reflects through a
    moment that turns with q is not in `bias_force` either (MuJoCo leaves it out). With such an
    actuator, which no MJCF model gives, `h = C v + g` still holds and `Ṁ = C + Cᵀ` holds for M
    without its armature.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.

    Returns:
        (nv, nv), sparse like the tree; not symmetric.
    """
    chain = chain_of(tree)
    travels = link_travels(chain, q, v)
    carried, before_joint = carried_subtrees(chain, travels, v)
    C = ca.SX(tree.nv, tree.nv)
    for j, link in enumerate(chain.links):
        travel = travels[j]
        for dof, coupling in couplings(link, carried[j], travel.w):
            for row, value in wrench_on_dofs(link, coupling.wrench, travel.plain):
                C[row, dof] = value
        # The turn of a hinge about its own axis is done already: see `carried_subtrees`.
        hinged = link.joint.kind == "hinge"
        subtree, w = (before_joint[j], travel.before) if hinged else (carried[j], travel.w)
        steps = travel.steps[: len(link.before)] if hinged else travel.steps
        for dof, coupling in couplings(link, subtree, w):
            _fill_ancestor_entries(chain, travels, link.parent, dof, coupling.to_parent(steps), C)
    return ca.sparsify(C + tendon_coriolis(tree, q, v))


def _fill_ancestor_entries(
    chain: Chain, travels: list[Travel], i: int, dof: int, coupling: InertialCoupling, C: ca.SX
) -> None:
    """Write the entries of one dof with link i and its ancestors; the coupling is at link i."""
    while i != WORLD:
        link, travel = chain.links[i], travels[i]
        for row, value in wrench_on_dofs(link, coupling.wrench, travel.plain):
            C[row, dof] = value
        for column, value in on_turning_axes(link, coupling, travel.w):
            C[dof, column] = value
        coupling = coupling.to_parent(travel.steps)
        i = link.parent
