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

from dataclasses import dataclass

import casadi as ca

from mbcasadi.description import RigidTree
from mbcasadi.model.chain import WORLD, Chain, Link, chain_of
from mbcasadi.model.mass_flow import Subtree, Travel, as_rows, carried_subtrees, link_travels
from mbcasadi.model.motion import Wrench, wrench_on_dofs
from mbcasadi.model.recursion import rows_times
from mbcasadi.spatial import (
    Mat3,
    Scalar,
    Step,
    Vec3,
    add,
    cross,
    scale,
    transpose,
    vector_to_parent,
    wrench_to_parent,
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
    travels = link_travels(chain, q, v)
    carried, before_joint = carried_subtrees(chain, travels, v)
    C = ca.SX(tree.nv, tree.nv)
    for j, link in enumerate(chain.links):
        travel = travels[j]
        for dof, coupling in _couplings(link, carried[j], travel.w):
            for row, value in wrench_on_dofs(link, coupling.wrench, travel.plain):
                C[row, dof] = value
        # The turn of a hinge about its own axis is done already: see `carried_subtrees`.
        hinged = link.joint.kind == "hinge"
        subtree, w = (before_joint[j], travel.before) if hinged else (carried[j], travel.w)
        steps = travel.steps[: len(link.before)] if hinged else travel.steps
        for dof, coupling in _couplings(link, subtree, w):
            _fill_ancestor_entries(chain, travels, link.parent, dof, coupling.to_parent(steps), C)
    return ca.sparsify(C)


@dataclass(frozen=True)
class _InertialCoupling:
    """Inertial coupling of one dof with the joints that carry it, over all that the dof carries.

    With `J` of the dof: `∫ J̇ dm` as the wrench; and a linear form on the motion
    `α + ė × r + e × ṙ` of another joint, `force · α + moment · ė + swing · e`.
    """

    wrench: Wrench
    force: Vec3
    moment: Vec3
    swing: Vec3

    def to_parent(self, steps: tuple[tuple[Step, Vec3], ...]) -> "_InertialCoupling":
        """Return it in the axes and about the origin that the steps start from."""
        wrench, force, moment, swing = self.wrench, self.force, self.moment, self.swing
        for step, rate in reversed(steps):
            swing = add(vector_to_parent(step, swing), cross(rate, force))
            wrench = wrench_to_parent(step, *wrench)
            force, moment = wrench_to_parent(step, force, moment)
        return _InertialCoupling(wrench, force, moment, swing)


def _couplings(link: Link, subtree: Subtree, w: Vec3) -> list[tuple[int, _InertialCoupling]]:
    """Return the coupling of each dof of a link; a free joint's linear ones have none.

    Its linear velocity is along the world's axes, which do not move.
    """
    dof = link.joint.dof
    match link.joint.kind:
        case "hinge":
            return [(dof, _rotation_coupling(subtree, w, 2))]
        case "slide":
            return [(dof, _translation_coupling(subtree, w, 2))]
        case "ball":
            return [(dof + k, _rotation_coupling(subtree, w, k)) for k in range(3)]
    return [(dof + 3 + k, _rotation_coupling(subtree, w, k)) for k in range(3)]


def _rotation_coupling(subtree: Subtree, w: Vec3, k: int) -> _InertialCoupling:
    """Return the coupling of a unit twist about axis k of axes that turn with w.

    `∫ r × (ė × r + e × ṙ) dm = (E ω) × e + tr(D) e - D e` with `ė = ω × e`.
    """
    e, E = UNIT[k], as_rows(subtree.moments.row(i) for i in range(3))
    force, moment = subtree.moments.rotation_wrench(k)
    grow = scale(subtree.D[0][0] + subtree.D[1][1] + subtree.D[2][2], e)
    wrench = (
        add(cross(w, force), cross(e, subtree.flow)),
        add(cross(rows_times(E, w), e), add(grow, scale(-1.0, transpose(subtree.D)[k]))),
    )
    swing = add(rows_times(E, cross(w, e)), add(grow, scale(-1.0, subtree.D[k])))
    return _InertialCoupling(wrench, force, moment, swing)


def _translation_coupling(subtree: Subtree, w: Vec3, k: int) -> _InertialCoupling:
    """Return the coupling of a unit shift along axis k of axes that turn with w."""
    e, s = UNIT[k], subtree.moments.first
    force, moment = subtree.moments.translation_wrench(k)
    turning = cross(w, e)
    wrench = (scale(subtree.moments.mass, turning), cross(s, turning))
    return _InertialCoupling(wrench, force, moment, cross(add(cross(w, s), subtree.flow), e))


def _fill_ancestor_entries(
    chain: Chain, travels: list[Travel], i: int, dof: int, coupling: _InertialCoupling, C: ca.SX
) -> None:
    """Write the entries of one dof with link i and its ancestors; the coupling is at link i."""
    while i != WORLD:
        link, travel = chain.links[i], travels[i]
        for row, value in wrench_on_dofs(link, coupling.wrench, travel.plain):
            C[row, dof] = value
        for column, value in _on_turning_axes(link, coupling, travel.w):
            C[dof, column] = value
        coupling = coupling.to_parent(travel.steps)
        i = link.parent


def _on_turning_axes(link: Link, coupling: _InertialCoupling, w: Vec3) -> list[tuple[int, Scalar]]:
    """Return the form of a coupling on the motion of each dof of link, whose axes turn with w."""
    dof = link.joint.dof
    if link.joint.kind == "slide":
        return [(dof, cross(coupling.force, w)[2])]
    on_axis = add(coupling.swing, cross(coupling.moment, w))  # moment · (ω × e) + swing · e
    match link.joint.kind:
        case "hinge":
            return [(dof, on_axis[2])]
        case "ball":
            return [(dof + k, on_axis[k]) for k in range(3)]
    return [(dof + 3 + k, on_axis[k]) for k in range(3)]
