"""Motion of the configuration: quaternions make it a manifold, with nq ≥ nv coordinates."""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Joint, RigidTree
from mbcasadi.model.motion import quat_of, raw_quat
from mbcasadi.spatial import (
    Quat,
    conjugate,
    entries,
    exponential,
    logarithm,
    multiply,
    stack,
    velocity_matrix,
)
from mbcasadi.spatial.quaternions import LEAST_LENGTH2

RANDOM_ANGLE = 1.0
"""Standard deviation of random hinge angles, rad."""

RANDOM_SHIFT = 0.3
"""Standard deviation of random slide positions, m."""


def velocity_map(tree: RigidTree, q: ca.SX) -> ca.SX:
    """Return N (nq, nv) with `dq/dt = N v`.

    N is linear in a quaternion and keeps its length, whatever it is, so `∂F/∂q N` is the tangent
    derivative of any F that depends on the orientation only.
    """
    N = ca.SX(tree.nq, tree.nv)
    for joint in tree.joints:
        row, dof = joint.qpos, joint.dof
        if joint.kind in {"slide", "hinge"}:
            N[row, dof] = 1.0
            continue
        if joint.kind == "free":
            N[row : row + 3, dof : dof + 3] = ca.SX.eye(3)
            row, dof = row + 3, dof + 3
        for i, line in enumerate(velocity_matrix(raw_quat(q, row))):
            for k, value in enumerate(line):
                N[row + i, dof + k] = value
    return ca.sparsify(N)


def tangent_jacobian(tree: RigidTree, expression: ca.SX, q: ca.SX) -> ca.SX:
    """Return `∂F/∂q N` (k, nv) of an expression of q, a quaternion of length zero as the identity.

    Args:
        tree: the mechanism.
        expression: (k, 1).
        q: (nq, 1) symbols.
    """
    J = ca.jacobian(expression, q) @ velocity_map(tree, q)
    return ca.substitute(J, q, _with_rotations(tree, q))


def tangent_rate(tree: RigidTree, expression: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `∂F/∂q N v` (k, 1), as `tangent_jacobian` without the matrix.

    Args:
        tree: the mechanism.
        expression: (k, 1).
        q, v: (nq, 1) symbols, (nv, 1).
    """
    rate = ca.jtimes(expression, q, velocity_map(tree, q) @ v)
    return ca.substitute(rate, q, _with_rotations(tree, q))


def _with_rotations(tree: RigidTree, q: ca.SX) -> ca.SX:
    """Return q with the identity for quaternions of length zero, whose N would be zero."""
    rotated = ca.SX(q)
    for joint in tree.joints:
        if joint.kind in {"ball", "free"}:
            row, _ = quaternion_rows(joint)
            quaternion = q[row : row + 4]
            rotated[row] = ca.if_else(ca.sumsqr(quaternion) < LEAST_LENGTH2, 1.0, q[row])
    return rotated


def integrate(tree: RigidTree, q: ca.SX, dv: ca.SX) -> ca.SX:
    """Return `q ⊕ dv`, the configuration after a unit time at velocity dv.

    Quaternions follow `quat ∘ exp(dv/2)`, as in MuJoCo's `mj_integratePos`; values and
    derivatives are finite at `dv = 0`.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        dv: (nv, 1) tangent step, rad and m.

    Returns:
        (nq, 1) next configuration.
    """
    q_next = ca.SX(tree.nq, 1)
    for joint in tree.joints:
        row, dof = joint.qpos, joint.dof
        if joint.kind in {"slide", "hinge"}:
            q_next[row] = q[row] + dv[dof]
            continue
        if joint.kind == "free":
            q_next[row : row + 3] = q[row : row + 3] + dv[dof : dof + 3]
        row, dof = quaternion_rows(joint)
        turned = multiply(quat_of(q, row), exponential(entries(dv, dof)))
        q_next[row : row + 4] = ca.vertcat(*turned)
    q_next[tree.nq_of_joints :, 0] = q[tree.nq_of_joints :, 0]
    return q_next


def difference(tree: RigidTree, q0: ca.SX, q1: ca.SX) -> ca.SX:
    """Return `q1 ⊖ q0`, the dv with `integrate(q0, dv) = q1` and rotations within ±π.

    The same as MuJoCo's `mj_differentiatePos`; values and derivatives are finite at `q0 = q1`.

    Args:
        tree: the mechanism.
        q0: (nq, 1) configuration to start from.
        q1: (nq, 1) configuration to reach.

    Returns:
        (nv, 1) tangent step.
    """
    dv = ca.SX(tree.nv, 1)
    for joint in tree.joints:
        row, dof = joint.qpos, joint.dof
        if joint.kind in {"slide", "hinge"}:
            dv[dof] = q1[row] - q0[row]
            continue
        if joint.kind == "free":
            dv[dof : dof + 3] = q1[row : row + 3] - q0[row : row + 3]
        row, dof = quaternion_rows(joint)
        dv[dof : dof + 3] = stack(rotation_between(quat_of(q0, row), quat_of(q1, row)))
    return dv


def rotation_between(start: Quat, end: Quat) -> tuple[ca.SX | float, ca.SX | float, ca.SX | float]:
    """Return the rotation vector, rad, that leads from one orientation to the other."""
    return logarithm(multiply(conjugate(start), end))


def quaternion_rows(joint: Joint) -> tuple[int, int]:
    """Return the first row in q and in v of the rotation of a ball or free joint."""
    shift = 3 if joint.kind == "free" else 0
    return joint.qpos + shift, joint.dof + shift


def random_state(
    tree: RigidTree, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a random state (q, v), shapes (nq,) and (nv,), quaternions unit.

    Hinges and slides are spread about their authored values, orientations over all rotations.
    """
    q = np.array(tree.q0, dtype=float)
    for joint in tree.joints:
        if joint.kind == "hinge":
            q[joint.qpos] += RANDOM_ANGLE * rng.standard_normal()
        elif joint.kind == "slide":
            q[joint.qpos] += RANDOM_SHIFT * rng.standard_normal()
        else:
            if joint.kind == "free":
                q[joint.qpos : joint.qpos + 3] += RANDOM_SHIFT * rng.standard_normal(3)
            row, _ = quaternion_rows(joint)
            quat = rng.standard_normal(4)
            q[row : row + 4] = quat / np.linalg.norm(quat)
    return q, rng.standard_normal(tree.nv)
