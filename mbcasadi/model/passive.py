"""Passive forces: springs, dampers, gravity compensation and a medium's, as `qfrc_passive`."""

from collections.abc import Callable, Sequence

import casadi as ca

from mbcasadi.description import Actuator, Joint, RigidTree, Tendon
from mbcasadi.description.tree import DOF_SIZE
from mbcasadi.model.chain import WORLD, chain_of
from mbcasadi.model.configuration import quaternion_rows, rotation_between
from mbcasadi.model.fluid import fluid_force
from mbcasadi.model.frames import point_jacobian
from mbcasadi.model.motion import from_columns, link_poses, quat_of
from mbcasadi.model.roots import smooth_root
from mbcasadi.model.transmission import moment_row, tendon_length, tendon_row
from mbcasadi.spatial import (
    ZERO3,
    Quat,
    Scalar,
    Vec3,
    add,
    cross,
    dot,
    is_zero,
    scalar,
    scale,
    stack,
    vec3,
)

NO_WEIGHT: tuple[Scalar, Vec3] = (0.0, ZERO3)


def passive_force(tree: RigidTree, q: ca.SX, v: ca.SX, actuators: Sequence[Actuator] = ()) -> ca.SX:
    """Return f_passive: springs, dampers, gravity compensation and fluid forces of the mechanism.

    Compensation that a joint routes to its actuator counts as actuator force instead.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.
        actuators: those whose damping counts.

    Returns:
        (nv, 1) passive force = `qfrc_passive`.
    """
    force = ca.SX(tree.nv, 1)
    for joint in tree.joints:
        for row, value in _joint_spring(tree, joint, q):
            force[row] += value
        for row in range(joint.dof, joint.dof + dofs_of(joint)):
            force[row] -= damper_force(scalar(tree.damping[row]), joint.damping_poly)(v[row])
    for tendon in tree.tendons:
        if _is_passive(tendon):
            J = tendon_row(tree, tendon, q)
            force += J.T @ tendon_force(tree, tendon, q, J @ v)
    for actuator in actuators:
        if not is_zero(actuator.damping) or actuator.damping_poly:
            J = moment_row(tree, actuator, q)
            force -= J.T @ damper_force(actuator.damping, actuator.damping_poly)(J @ v)
    compensation = gravity_compensation(tree, q)
    for joint in tree.joints:
        if joint.compensation == "passive":
            rows = slice(joint.dof, joint.dof + dofs_of(joint))
            force[rows] += compensation[rows]
    return ca.sparsify(force + fluid_force(tree, q, v))


def gravity_compensation(tree: RigidTree, q: ca.SX) -> ca.SX:
    """Return `Σ Jᵀ (-gravcomp m g)` over the bodies' centres of mass, (nv, 1)."""
    chain = chain_of(tree)
    force = ca.SX(tree.nv, 1)
    # Weights on one link add up to one force and one moment about the link's origin.
    weights: dict[int, tuple[Scalar, Vec3]] = {}
    for i, body in enumerate(tree.bodies):
        link, weight = chain.body_link[i], body.gravcomp * body.mass
        if is_zero(weight) or link == WORLD or all(map(is_zero, tree.gravity)):
            continue
        pose = chain.body_pose[i]
        moment = scale(weight, vec3(pose.R @ body.com + pose.p))
        known = weights.get(link, NO_WEIGHT)
        weights[link] = (known[0] + weight, add(known[1], moment))
    poses = link_poses(chain, q, set(weights))
    up = scale(-1.0, vec3(tree.gravity))
    for link, (total, first) in weights.items():
        J = point_jacobian(chain, poses, link, poses[link].origin)
        moment = cross(from_columns(poses[link].columns, first), up)
        force += J.T @ stack(scale(total, up), moment)
    return ca.sparsify(force)


def joint_stretches(tree: RigidTree, joint: Joint, q: ca.SX) -> list[tuple[int, ca.SX | Vec3]]:
    """Return how far a joint's springs are from rest, each with the first dof that it acts on.

    A number for a slide or hinge; vectors for a ball or free joint, m and rad.
    """
    row = joint.qpos
    if joint.kind in {"slide", "hinge"}:
        return [(joint.dof, q[row] - scalar(tree.q_spring[row]))]
    translation: list[tuple[int, ca.SX | Vec3]] = []
    if joint.kind == "free":
        shift: Vec3 = (
            q[row] - float(tree.q_spring[row]),
            q[row + 1] - float(tree.q_spring[row + 1]),
            q[row + 2] - float(tree.q_spring[row + 2]),
        )
        translation.append((joint.dof, shift))
    row, dof = quaternion_rows(joint)
    w, x, y, z = (scalar(c) for c in tree.q_spring[row : row + 4])
    rest: Quat = (w, x, y, z)
    return [*translation, (dof, rotation_between(rest, quat_of(q, row)))]


def tendon_stretch(tree: RigidTree, tendon: Tendon, q: ca.SX) -> ca.SX:
    """Return how far a tendon's length is outside its spring's dead band, with its sign."""
    return stretch_of(tendon, tendon_length(tree, tendon, q))


def stretch_of(tendon: Tendon, length: ca.SX) -> ca.SX:
    """Return how far a length of a tendon is outside its spring's dead band, with its sign."""
    lower, upper = tendon.spring_range
    if is_zero(upper - lower):
        return length - upper
    return ca.fmax(length - upper, 0.0) + ca.fmin(length - lower, 0.0)


def joint_springs(tree: RigidTree, joint: Joint, q: ca.SX) -> list[tuple[int, Scalar]]:
    """Return the rows and slopes of a joint's spring; of a radial one force over stretch."""
    k, poly, found = joint.stiffness, joint.stiffness_poly, list[tuple[int, Scalar]]()
    if is_zero(k) and not poly:
        return found
    for dof, stretch in joint_stretches(tree, joint, q):
        if isinstance(stretch, tuple):
            found += [(dof + i, _radial_factor(k, poly, stretch)) for i in range(len(stretch))]
        else:
            x = ca.SX.sym("x")
            slope = ca.jacobian(ca.SX(spring_force(k, poly)(x)), x)
            found.append((dof, ca.substitute(slope, x, stretch)))
    return found


def _joint_spring(tree: RigidTree, joint: Joint, q: ca.SX) -> list[tuple[int, Scalar]]:
    """Return the rows and forces of a joint's spring."""
    k, poly = joint.stiffness, joint.stiffness_poly
    if is_zero(k) and not poly:
        return []
    forces: list[tuple[int, Scalar]] = []
    for dof, stretch in joint_stretches(tree, joint, q):
        if isinstance(stretch, tuple):
            forces += _radial_spring(dof, k, poly, stretch)
        else:
            forces.append((dof, -spring_force(k, poly)(stretch)))
    return forces


def _radial_spring(
    dof: int, k: Scalar, poly: tuple[float, ...], stretch: Vec3
) -> list[tuple[int, Scalar]]:
    """Return `-(k + k₁ |x| + k₂ |x|² + …) x` on three rows."""
    factor = _radial_factor(k, poly, stretch)
    return [(dof + i, -(factor * x)) for i, x in enumerate(stretch)]


def _radial_factor(k: Scalar, poly: tuple[float, ...], stretch: Vec3) -> Scalar:
    return k + _polynomial(poly, smooth_root(dot(stretch, stretch))) if poly else k


def spring_force(k: Scalar, poly: tuple[float, ...]) -> Callable[[ca.SX], ca.SX]:
    """Return x → `k x + k₁ x² + k₂ x³ + …`: even powers do not change sign with x."""
    return lambda x: (k + _polynomial(poly, x)) * x


def damper_force(b: Scalar, poly: tuple[float, ...]) -> Callable[[ca.SX], ca.SX]:
    """Return v → `(b + b₁ |v| + b₂ |v|² + …) v`."""
    return lambda rate: (b + (_polynomial(poly, ca.fabs(rate)) if poly else 0.0)) * rate


def _polynomial(poly: tuple[float, ...], x: ca.SX) -> Scalar:
    """Return `p₁ x + p₂ x² + …`."""
    value: Scalar = 0.0
    for coefficient in reversed(poly):
        value = (value + coefficient) * x
    return value


def _is_passive(tendon: Tendon) -> bool:
    """Return whether a tendon has a spring or a damper."""
    springs = not is_zero(tendon.stiffness) or tendon.stiffness_poly
    return bool(springs or not is_zero(tendon.damping) or tendon.damping_poly)


def tendon_force(tree: RigidTree, tendon: Tendon, q: ca.SX, rate: ca.SX) -> ca.SX:
    """Return the force of a tendon's spring and damper along its length; negative where it pulls.

    Args:
        tree: the mechanism.
        tendon: one of its tendons.
        q: (nq, 1) configuration.
        rate: of its length.
    """
    force = -damper_force(tendon.damping, tendon.damping_poly)(rate)
    if is_zero(tendon.stiffness) and not tendon.stiffness_poly:
        return force
    stretch = tendon_stretch(tree, tendon, q)
    return force - spring_force(tendon.stiffness, tendon.stiffness_poly)(stretch)


def dofs_of(joint: Joint) -> int:
    """Return the number of rates of a joint."""
    return DOF_SIZE[joint.kind]
