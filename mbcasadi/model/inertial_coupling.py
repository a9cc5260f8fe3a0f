"""Inertial coupling of a joint with the joints that carry it, over the mass that it carries.

A unit twist of a joint about the axis e moves what the joint carries by `J = e × r`, and
`J̇ = ė × r + e × ṙ`: hence the moments `∫ ṙ dm` and `∫ ṙ rᵀ dm` of `flow`. Two quantities
are transformed towards the root: the wrench of `J̇` (rows), and the linear form of `J` on the
`J̇` of the joints that carry it (columns).
"""

from dataclasses import dataclass

from mbcasadi.model.chain import Link
from mbcasadi.model.mass_flow import RatedSteps, Subtree, as_rows
from mbcasadi.model.motion import Wrench
from mbcasadi.model.recursion import rows_times
from mbcasadi.spatial import (
    Mat3,
    Scalar,
    Vec3,
    add,
    cross,
    scale,
    transpose,
    vector_to_parent,
    wrench_to_parent,
)

UNIT: Mat3 = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class InertialCoupling:
    """Inertial coupling of one dof with the joints that carry it, over all that the dof carries.

    With `J` of the dof: `∫ J̇ dm` as the wrench; and a linear form on the motion
    `α + ė × r + e × ṙ` of another joint, `force · α + moment · ė + swing · e`.
    """

    wrench: Wrench
    force: Vec3
    moment: Vec3
    swing: Vec3

    def to_parent(self, steps: RatedSteps) -> "InertialCoupling":
        """Return it in the axes and about the origin that the steps start from."""
        wrench, force, moment, swing = self.wrench, self.force, self.moment, self.swing
        for step, rate in reversed(steps):
            swing = add(vector_to_parent(step, swing), cross(rate, force))
            wrench = wrench_to_parent(step, *wrench)
            force, moment = wrench_to_parent(step, force, moment)
        return InertialCoupling(wrench, force, moment, swing)


def couplings(link: Link, subtree: Subtree, w: Vec3) -> list[tuple[int, InertialCoupling]]:
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


def _rotation_coupling(subtree: Subtree, w: Vec3, k: int) -> InertialCoupling:
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
    return InertialCoupling(wrench, force, moment, swing)


def _translation_coupling(subtree: Subtree, w: Vec3, k: int) -> InertialCoupling:
    """Return the coupling of a unit shift along axis k of axes that turn with w."""
    e, s = UNIT[k], subtree.moments.first
    force, moment = subtree.moments.translation_wrench(k)
    turning = cross(w, e)
    wrench = (scale(subtree.moments.mass, turning), cross(s, turning))
    return InertialCoupling(wrench, force, moment, cross(add(cross(w, s), subtree.flow), e))


def on_turning_axes(link: Link, coupling: InertialCoupling, w: Vec3) -> list[tuple[int, Scalar]]:
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
