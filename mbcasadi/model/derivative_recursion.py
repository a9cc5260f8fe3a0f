"""Derivatives of the joint forces of a rigid tree, in one pass over what each joint carries.

Displace a joint by a unit along its axis e, and see its subtree from axes that move with it. The
subtree's own motion is unchanged there; only its carrier moves differently. With the carrier's
angular velocity ω, `U = [ω̇]× + [ω]×[ω]×` and acceleration (minus gravity) a of the joint's origin,

    turn about e:    δa = a × e,   δU = U [e]× - [e]× U,   δω = ω × e,
    shift along e:   δa = U e.

- A joint k above or the joint itself moves row j of its subtree by these alone: axis and wrench
  of j are displaced together. `δtau_j = moment·(U e) + force·(a × e) + 2 swing·(ω × e)` with the
  linear forms of `inertial_coupling`.
- Rows above k change by the wrench of the displaced subtree, and by its turn, `e × wrench`.

This is the derivative of J. Carpentier and N. Mansard, *Analytical Derivatives of Rigid Body
Dynamics Algorithms* (RSS 2018), summed over subtrees as S. Singh, R. Russell and P. M. Wensing,
*Efficient Analytical Derivatives of Rigid-Body Dynamics using Spatial Vector Algebra* (RA-L 2022),
with mass moments in the place of spatial matrices. Along velocities it is twice the Coriolis matrix
for hinges and slides; the axes of a ball are displaced by its own velocity too, which adds
`δω = ω_joint × e`. Neither positions nor linear velocities enter: no digits are lost far away.
"""

from dataclasses import dataclass, replace

import casadi as ca

from mbcasadi.model.chain import WORLD, Chain, Link
from mbcasadi.model.inertial_coupling import UNIT, InertialCoupling, couplings, on_turning_axes
from mbcasadi.model.joint_state import JointState, joint_states
from mbcasadi.model.mass_flow import (
    RatedSteps,
    Subtree,
    as_rows,
)
from mbcasadi.model.motion import Wrench, wrench_before, wrench_on_dofs
from mbcasadi.model.newton_euler import moment_of_field
from mbcasadi.model.recursion import rows_times
from mbcasadi.spatial import (
    Mat3,
    Scalar,
    Vec3,
    add,
    cross,
    dot,
    scale,
    subtract,
    transpose,
)

Entries = dict[tuple[int, int], Scalar]
"""Entries of a matrix by (row, column)."""


@dataclass(frozen=True)
class _Response:
    """How one dof couples with those that carry it.

    Attributes:
        coupling: with doubled rates; `coupling.wrench` is the derivative along the velocity.
        displaced: derivative of the subtree's wrench along the displacement.
    """

    coupling: InertialCoupling
    displaced: Wrench

    def before(self, steps: RatedSteps) -> "_Response":
        """Return it in the axes and about the origin that the steps start from."""
        plain = tuple(step for step, _ in steps)
        return _Response(self.coupling.to_parent(steps), wrench_before(plain, self.displaced))


def joint_force_derivatives(chain: Chain, q: ca.SX, v: ca.SX, a: ca.SX) -> tuple[Entries, Entries]:
    """Return the derivatives of the joint forces without armature by `q ⊕ dq` and by v.

    Args:
        chain: the links.
        q, v, a: (nq, 1), (nv, 1), (nv, 1) configuration, velocity, acceleration.

    Returns:
        Entries (row, column) by q and by v; structural zeros are absent.
    """
    states = joint_states(chain, q, v, a)
    by_q: Entries = {}
    by_v: Entries = {}
    for state in states:
        responses = _responses(state)
        if state.link.joint.kind == "free":
            # Rows of its linear velocity; those of its rotations are written again below.
            for dof, response in responses:
                _write_rows(state, dof, response, by_q, by_v)
        for dof, response in responses:
            _write_columns(state, dof, response.coupling, by_q, by_v)
            i, response = state.link.parent, response.before(state.outer)
            while i != WORLD:
                above = states[i]
                response = _write_rows(above, dof, response, by_q, by_v)
                _write_columns(above, dof, response.coupling, by_q, by_v)
                i, response = above.link.parent, response.before(above.outer)
    return by_q, by_v


def _responses(state: JointState) -> list[tuple[int, _Response]]:
    """Return the response of each dof; none for those of a free joint's linear velocity."""
    rotational = state.link.joint.kind != "slide"
    doubled = scale(2.0, state.carrier.w)
    responses = []
    for k, (dof, coupling) in zip(
        _axes_of(state.link), couplings(state.link, state.subtree, doubled), strict=True
    ):
        if rotational:
            swept = _angular_wrench(state.subtree, cross(state.spin, UNIT[k]))
            coupling = replace(coupling, wrench=_sum(coupling.wrench, swept))
            displaced = _turned_wrench(state, UNIT[k])
        else:
            displaced = _shifted_wrench(state, UNIT[k])
        responses.append((dof, _Response(coupling, displaced)))
    return responses


def _axes_of(link: Link) -> tuple[int, ...]:
    """Return the axis of each dof of the couplings of a link."""
    return (2,) if link.joint.kind in {"hinge", "slide"} else (0, 1, 2)


def _angular_wrench(subtree: Subtree, dw: Vec3) -> Wrench:
    """Return the wrench of an angular acceleration dw of all that is carried."""
    m = subtree.moments
    moment = as_rows(m.inertia_column(k) for k in range(3))
    return cross(dw, m.first), rows_times(moment, dw)


def _turned_wrench(state: JointState, e: Vec3) -> Wrench:
    """Return the derivative of the wrench of a subtree that turns about e."""
    carrier, subtree = state.carrier, state.subtree
    da, dw, dU = cross(carrier.a, e), cross(carrier.w, e), _turned_field(carrier.U, e)
    m = subtree.moments
    D = subtree.D
    flow_moment = subtract(scale(D[0][0] + D[1][1] + D[2][2], dw), rows_times(D, dw))
    spread = (dU[2][2] - dU[1][1], dU[0][0] - dU[2][2], dU[1][1] - dU[0][0])
    force = add(add(scale(m.mass, da), rows_times(dU, m.first)), cross(dw, subtree.flow))
    moment = add(add(cross(m.first, da), moment_of_field(dU, spread, m.second)), flow_moment)
    return add(force, cross(e, state.wrench[0])), add(moment, cross(e, state.wrench[1]))


def _shifted_wrench(state: JointState, e: Vec3) -> Wrench:
    """Return the derivative of the wrench of a subtree that shifts along e."""
    da, m = rows_times(state.carrier.U, e), state.subtree.moments
    return scale(m.mass, da), add(cross(m.first, da), cross(e, state.wrench[0]))


def _turned_field(U: Mat3, e: Vec3) -> Mat3:
    """Return `U [e]× - [e]× U`."""
    by_rows = as_rows(cross(row, e) for row in U)  # xᵀ [e]× = (x × e)ᵀ
    by_columns = transpose(as_rows(cross(e, column) for column in transpose(U)))
    return as_rows(subtract(x, y) for x, y in zip(by_rows, by_columns, strict=True))


def _sum(one: Wrench, two: Wrench) -> Wrench:
    return add(one[0], two[0]), add(one[1], two[1])


def _write_rows(
    above: JointState, dof: int, response: _Response, by_q: Entries, by_v: Entries
) -> _Response:
    """Write the rows of a joint that carries the dof, and return the response in its joint axes.

    Args:
        above: the joint that carries the dof.
        dof: column of the entries.
        response: of the dof, in the frame of the link of that joint.
        by_q, by_v: the matrices.
    """
    response = response.before(above.inner)
    steps = tuple(step for step, _ in above.outer)
    for entries, wrench in ((by_v, response.coupling.wrench), (by_q, response.displaced)):
        for row, value in wrench_on_dofs(above.link, wrench, steps):
            entries[row, dof] = value
    return response


def _write_columns(
    above: JointState, dof: int, coupling: InertialCoupling, by_q: Entries, by_v: Entries
) -> None:
    """Write the row of one dof by the displacement and speed of one joint.

    Args:
        above: the joint that moves: one that carries the dof, or its own.
        dof: row of the entries.
        coupling: of the dof, in the joint axes of `above`.
        by_q, by_v: the matrices.
    """
    for column, value in on_turning_axes(above.link, coupling, above.turning):
        by_v[dof, column] = value
    for column, value in _on_displacement(above, coupling):
        by_q[dof, column] = value


def _on_displacement(above: JointState, coupling: InertialCoupling) -> list[tuple[int, Scalar]]:
    """Return `moment·(U e) + force·(a × e) + 2 swing·(ω × e)` for each axis e of a joint."""
    joint, carrier = above.link.joint, above.carrier
    columns = transpose(carrier.U)
    if joint.kind == "slide":
        return [(joint.dof, dot(coupling.force, columns[2]))]
    by_field = rows_times(columns, coupling.moment)
    by_motion = add(cross(coupling.force, carrier.a), cross(coupling.swing, carrier.w))
    total = add(by_field, by_motion)
    match joint.kind:
        case "hinge":
            return [(joint.dof, total[2])]
        case "ball":
            return [(joint.dof + k, total[k]) for k in range(3)]
    return [(joint.dof + 3 + k, total[k]) for k in range(3)]
