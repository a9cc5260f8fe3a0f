"""How springs, dampers and servos change over a step: their slopes along the lengths they act on.

A force F of a length L with the moment J, `L̇ = J v`, is at the end of a step h

    F - k h (L̇ + h J a) - d h J a,    k = -∂F/∂L,   d = -∂F/∂L̇,

so that it adds `Jᵀ (h d + h² k) J` to M and `-h Jᵀ k J v` to the force. Slopes that would not slow
a motion down count as zero. Springs of rotations in space are taken as straight ones.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import casadi as ca

from mbcasadi.description import Actuator, RigidTree, Tendon
from mbcasadi.model.passive import damper_force, dofs_of, joint_springs, spring_force, stretch_of
from mbcasadi.model.transmission import moment_row, tendon_length, tendon_row
from mbcasadi.spatial import Scalar, is_zero, scalar


class Slope(NamedTuple):
    """Of one force: its moment (1, nv), damping d and stiffness k."""

    row: ca.SX
    damping: Scalar
    stiffness: Scalar


def actuator_slopes(
    tree: RigidTree, actuators: Sequence[Actuator], q: ca.SX
) -> tuple[Slope | None, ...]:
    """Return the slopes of each actuator's bias, None where it has none."""
    return tuple(_of_actuator(tree, actuator, q) for actuator in actuators)


def slopes_at_end(
    tree: RigidTree, actuators: Sequence[Actuator], q: ca.SX, v: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """Return `Σ Jᵀ d J` and `Σ Jᵀ k J`, (nv, nv), of joints, tendons and actuators.

    Args:
        tree: the mechanism.
        actuators: in the order of the controls.
        q, v: (nq, 1), (nv, 1) state.
    """
    D, K = ca.SX(tree.nv, tree.nv), ca.SX(tree.nv, tree.nv)
    for joint in tree.joints:
        for row in range(joint.dof, joint.dof + dofs_of(joint)):
            law = damper_force(scalar(tree.damping[row]), joint.damping_poly)
            D[row, row] += _slope(law, v[row])
        for row, stiffness in joint_springs(tree, joint, q):
            K[row, row] += _not_negative(stiffness)
    found = [*actuator_slopes(tree, actuators, q), *_of_tendons(tree, q, v)]
    for slope in found:
        if slope is not None:
            square = slope.row.T @ slope.row
            D += square * slope.damping
            K += square * slope.stiffness
    return ca.sparsify(D), ca.sparsify(K)


def _of_tendons(tree: RigidTree, q: ca.SX, v: ca.SX) -> list[Slope]:
    found = []
    for tendon in tree.tendons:
        row = tendon_row(tree, tendon, q)
        d = _slope(damper_force(tendon.damping, tendon.damping_poly), row @ v)
        k = _slope(_spring_over_length(tendon), tendon_length(tree, tendon, q))
        if not (is_zero(d) and is_zero(k)):
            found.append(Slope(row, d, k))
    return found


def _spring_over_length(tendon: Tendon) -> Callable[[ca.SX], Scalar]:
    spring = spring_force(tendon.stiffness, tendon.stiffness_poly)
    return lambda length: spring(stretch_of(tendon, length))


def _of_actuator(tree: RigidTree, actuator: Actuator, q: ca.SX) -> Slope | None:
    _, b_1, b_2 = actuator.bias
    if not actuator.acts or actuator.muscle_bias is not None or (is_zero(b_1) and is_zero(b_2)):
        return None
    d, k = _not_negative(-b_2), _not_negative(-b_1)
    if not _has_length(tree, actuator):
        k = 0.0
    return None if is_zero(d) and is_zero(k) else Slope(moment_row(tree, actuator, q), d, k)


def _has_length(tree: RigidTree, actuator: Actuator) -> bool:
    """Return whether an actuator's length changes: that of a free joint and of a site is zero."""
    if actuator.transmission in ("joint", "jointinparent"):
        return tree.joints[actuator.target].kind != "free"
    return actuator.transmission != "site" or actuator.reference is not None


def _slope(law: Callable[[ca.SX], Scalar], at: ca.SX) -> Scalar:
    """Return the slope of a law at an expression, at least zero."""
    x = ca.SX.sym("x")
    slope = ca.jacobian(ca.SX(law(x)), x)
    return _not_negative(ca.substitute(slope, x, at) if slope.nnz() else ca.SX(0))


def _not_negative(slope: Scalar) -> Scalar:
    value = ca.SX(slope)
    return max(float(value), 0.0) if value.is_constant() else ca.fmax(value, 0)
