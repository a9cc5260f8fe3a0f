"""Derivatives of inverse dynamics `M a + h` of a rigid tree by configuration and velocity."""

from collections.abc import Mapping, Sequence

import casadi as ca

from mbcasadi.description import Actuator, RigidTree
from mbcasadi.model.chain import chain_of
from mbcasadi.model.configuration import tangent_jacobian
from mbcasadi.model.derivative_recursion import joint_force_derivatives
from mbcasadi.model.inertia import armature_matrix
from mbcasadi.model.tendon_armature import tendon_bias_force
from mbcasadi.spatial import Scalar


def inverse_dynamics_derivatives(
    tree: RigidTree, q: ca.SX, v: ca.SX, a: ca.SX, actuators: Sequence[Actuator] = ()
) -> tuple[ca.SX, ca.SX]:
    """Return `∂(M a + h)/∂q` along `q ⊕ dq` and `∂(M a + h)/∂v`, each (nv, nv).

    See `derivative_recursion`. Both are sparse like the tree: joints on different branches do not
    share an entry. Along the linear velocity of a free joint both are zero.

    Args:
        tree: the mechanism.
        q, v, a: (nq, 1), (nv, 1), (nv, 1) configuration, velocity, acceleration.
        actuators: those whose armature counts.
    """
    by_q, by_v = (_matrix(tree.nv, e) for e in joint_force_derivatives(chain_of(tree), q, v, a))
    armature = armature_matrix(tree, q, actuators)
    of_lengths = armature @ a + tendon_bias_force(tree, q, v)
    # The moment of an actuator at a site turns with q, and the row of a spatial tendon.
    if ca.depends_on(of_lengths, ca.vertcat(q, v)):
        by_q += tangent_jacobian(tree, of_lengths, q)
        by_v += ca.jacobian(of_lengths, v)
    return ca.sparsify(by_q), ca.sparsify(by_v)


def _matrix(n: int, entries: Mapping[tuple[int, int], Scalar]) -> ca.SX:
    matrix = ca.SX(n, n)
    for (row, column), value in entries.items():
        matrix[row, column] = value
    return matrix
