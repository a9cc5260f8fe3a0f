"""Lengths and moments of tendons and of actuators: generalised forces of a unit force."""

import casadi as ca
import numpy as np

from mbcasadi.description import Actuator, FixedTendon, Frame, RigidTree, Tendon
from mbcasadi.description.tree import DOF_SIZE
from mbcasadi.model.chain import chain_of
from mbcasadi.model.configuration import quaternion_rows, rotation_between, tangent_rate
from mbcasadi.model.crank import crank_length, crank_row
from mbcasadi.model.frames import frame_jacobian, frame_on_link, frame_pose
from mbcasadi.model.motion import quat_of
from mbcasadi.model.tendon_path import path_length, path_row
from mbcasadi.spatial import (
    Quat,
    Scalar,
    dot,
    logarithm,
    multiply,
    rotate_back,
    rotation,
    scalar,
    stack,
    vec3,
)


def tendon_length(tree: RigidTree, tendon: Tendon, q: ca.SX) -> ca.SX:
    """Return `L = Σ coef_i q_i`, or the length of the path of a spatial tendon, m."""
    if not isinstance(tendon, FixedTendon):
        return path_length(tree, tendon, q)
    length = ca.SX(0)
    for j, coef in zip(tendon.joints, tendon.coef, strict=True):
        length += float(coef) * q[tree.joints[j].qpos]
    return length


def tendon_row(tree: RigidTree, tendon: Tendon, q: ca.SX) -> ca.SX:
    """Return `∂L/∂v` (1, nv); constant for a fixed tendon."""
    if not isinstance(tendon, FixedTendon):
        return path_row(tree, tendon, q)
    row = ca.SX(1, tree.nv)
    for j, coef in zip(tendon.joints, tendon.coef, strict=True):
        row[tree.joints[j].dof] += float(coef)
    return row


def tendon_bias(tree: RigidTree, tendon: Tendon, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `J̇ v`, the acceleration of a tendon's length at zero joint acceleration.

    Args:
        tree: the mechanism.
        tendon: one of its tendons.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.

    Returns:
        Scalar, m/s² of a spatial tendon; structurally zero for a fixed one.
    """
    if isinstance(tendon, FixedTendon):
        return ca.SX(1, 1)
    rate = path_row(tree, tendon, q) @ v
    return tangent_rate(tree, rate, q, v)


def moment_row(tree: RigidTree, actuator: Actuator, q: ca.SX) -> ca.SX:
    """Return the moment (1, nv): `qfrc = momentᵀ force`, as MuJoCo's `actuator_moment`."""
    gear = np.asarray(actuator.gear, dtype=float)
    if actuator.transmission == "tendon":
        return float(gear[0]) * tendon_row(tree, tree.tendons[actuator.target], q)
    if actuator.transmission == "site":
        return _site_row(tree, actuator, q)
    if actuator.transmission == "slidercrank":
        return crank_row(tree, actuator, q)
    if actuator.transmission == "body":  # adhesion: a force between bodies that touch
        return ca.SX(1, tree.nv)
    return _joint_row(tree, actuator, q)


def actuator_length(tree: RigidTree, actuator: Actuator, q: ca.SX) -> ca.SX:
    """Return the length in the actuator's gain and bias, as MuJoCo's `actuator_length`.

    Zero for a free joint, for a site without a reference and for adhesion, which have no length.
    """
    gear = np.asarray(actuator.gear, dtype=float)
    if actuator.transmission == "tendon":
        return float(gear[0]) * tendon_length(tree, tree.tendons[actuator.target], q)
    if actuator.transmission == "site":
        return _site_length(tree, actuator, q)
    if actuator.transmission == "slidercrank":
        return crank_length(tree, actuator, q)
    if actuator.transmission == "body":
        return ca.SX(0)
    joint = tree.joints[actuator.target]
    if joint.kind in {"slide", "hinge"}:
        return float(gear[0]) * q[joint.qpos]
    if joint.kind == "free":
        return ca.SX(0)
    rotation_vector = logarithm(quat_of(q, joint.qpos))
    # A rotation leaves its own axis in place: the gear's frame, child or parent, is the same.
    return ca.SX(dot(vec3(gear), rotation_vector))


def _joint_row(tree: RigidTree, actuator: Actuator, q: ca.SX) -> ca.SX:
    joint, gear = tree.joints[actuator.target], actuator.gear
    row = ca.SX(1, tree.nv)
    if joint.kind in {"slide", "hinge"}:
        row[joint.dof] = float(gear[0])
        return ca.sparsify(row)
    first, dof = quaternion_rows(joint)
    torque = vec3(gear[:3] if joint.kind == "ball" else gear[3:6])
    if actuator.transmission == "jointinparent":
        torque = rotate_back(rotation(quat_of(q, first)), torque)
    row[dof : dof + 3] = stack(torque).T
    if joint.kind == "free":
        row[joint.dof : joint.dof + 3] = ca.DM(np.asarray(gear[:3], float)).T
    return ca.sparsify(row)


def _site_row(tree: RigidTree, actuator: Actuator, q: ca.SX) -> ca.SX:
    """Return `(R gear)ᵀ (J_site - J_ref)`: the wrench in the axes of the site, or of refsite.

    Columns of joints that carry both sites are zero: what moves both does not change the length.
    """
    frame = tree.frames[actuator.target]
    axes = frame if actuator.reference is None else tree.frames[actuator.reference]
    R = frame_pose(tree, axes, q)[1]
    gear = ca.DM(np.asarray(actuator.gear, float))
    J = frame_jacobian(tree, frame, q)
    if actuator.reference is not None:
        J = _without_shared_joints(tree, frame, axes, J - frame_jacobian(tree, axes, q))
    return ca.sparsify((R @ gear[:3]).T @ J[:3, :] + (R @ gear[3:]).T @ J[3:, :])


def _without_shared_joints(tree: RigidTree, frame: Frame, other: Frame, J: ca.SX) -> ca.SX:
    """Return J without the columns of joints that carry both frames."""
    chain = chain_of(tree)
    paths = [set(chain.path(frame_on_link(chain, f)[0])) for f in (frame, other)]
    shared = paths[0] & paths[1]
    keep = np.ones(tree.nv)
    for link in shared:
        joint = chain.links[link].joint
        keep[joint.dof : joint.dof + DOF_SIZE[joint.kind]] = 0.0
    return ca.sparsify(J @ ca.diag(ca.sparsify(ca.DM(keep))))


def _site_length(tree: RigidTree, actuator: Actuator, q: ca.SX) -> ca.SX:
    if actuator.reference is None:
        return ca.SX(0)
    gear = np.asarray(actuator.gear, dtype=float)
    frame, reference = tree.frames[actuator.target], tree.frames[actuator.reference]
    length = ca.SX(0)
    if np.any(gear[:3]):
        p, _ = frame_pose(tree, frame, q)
        p_ref, R_ref = frame_pose(tree, reference, q)
        length += ca.dot(ca.SX(ca.DM(gear[:3])), R_ref.T @ (p - p_ref))
    if np.any(gear[3:]):
        between = rotation_between(frame_quat(tree, reference, q), frame_quat(tree, frame, q))
        length += dot(vec3(gear[3:]), between)
    return length


def frame_quat(tree: RigidTree, frame: Frame, q: ca.SX) -> Quat:
    """Return the orientation of a frame in the world as a quaternion.

    It is the product of the quaternions on the way, as in MuJoCo, so its sign is MuJoCo's too.
    """
    quat = quat_in_body(tree, frame.body, q)
    return multiply(quat, quat_of_numbers(frame.quat))


def quat_in_body(tree: RigidTree, body: int, q: ca.SX, root: int = 0) -> Quat:
    """Return the orientation of a body in its ancestor as a quaternion.

    Args:
        tree: the mechanism.
        body: index of the body.
        q: (nq, 1) configuration.
        root: index of the ancestor, the world by default.
    """
    if body == root:
        return (1.0, 0.0, 0.0, 0.0)
    parent, quat_in_parent = tree.bodies[body].parent, tree.bodies[body].quat
    joints = [tree.joints[j] for j in tree.bodies[body].joints]
    for joint in joints:
        if joint.kind == "free":
            return quat_of(q, joint.qpos + 3)
    quat = multiply(quat_in_body(tree, parent, q, root), quat_of_numbers(quat_in_parent))
    for joint in joints:
        if joint.kind == "ball":
            quat = multiply(quat, quat_of(q, joint.qpos))
        elif joint.kind == "hinge":
            quat = multiply(quat, _hinge_quat(joint.axis, q[joint.qpos] - joint.ref))
    return quat


def _hinge_quat(axis: np.ndarray, angle: Scalar) -> Quat:
    half = angle / 2
    x, y, z = vec3(axis)
    s = ca.sin(half)
    return (ca.cos(half), s * x, s * y, s * z)


def quat_of_numbers(quat: np.ndarray) -> Quat:
    """Return a quaternion of a description as scalars."""
    w, x, y, z = (scalar(c) for c in quat)
    return (w, x, y, z)
