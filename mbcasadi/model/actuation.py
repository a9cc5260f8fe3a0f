"""Actuators: affine forces along their transmissions, with MuJoCo's ranges."""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.description import Actuator, RigidTree
from mbcasadi.description.tree import DOF_SIZE
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.model.passive import gravity_compensation
from mbcasadi.model.transmission import actuator_length, moment_row

Range = tuple[float, float] | None


def actuation(tree: RigidTree, actuators: Sequence[Actuator], q: ca.SX) -> ca.SX:
    """Return B (nv, nu) with `actuator_force = B u + f_0` inside all ranges.

    Column i is the moment of actuator i times its gain. Where an actuator has an activation
    state, u is that state.

    Raises:
        UnsupportedFeatureError: a gain depends on velocity, which B(q) cannot express.
    """
    B = ca.SX(tree.nv, len(actuators))
    for i, actuator in enumerate(actuators):
        g0, g1, g2 = actuator.gain
        if g2 != 0.0:
            raise UnsupportedFeatureError(
                f"actuator {actuator.name!r}: its gain depends on velocity, so no B(q) exists; "
                "use actuator_force, or set the third gain parameter to 0"
            )
        gain = g0 + (g1 * actuator_length(tree, actuator, q) if g1 else 0.0)
        B[:, i] = moment_row(tree, actuator, q).T * gain
    return ca.sparsify(B)


def actuator_bias(tree: RigidTree, actuators: Sequence[Actuator], q: ca.SX, v: ca.SX) -> ca.SX:
    """Return f_0 (nv, 1): the actuator force at u = 0, ranges apart.

    It holds the bias terms of servos, and the gravity compensation that joints route to their
    actuators.

    Args:
        tree: the mechanism.
        actuators: in the order of the controls.
        q, v: (nq, 1), (nv, 1) state.
    """
    f_0 = _routed_compensation(tree, q)
    for actuator in actuators:
        if any(actuator.bias):
            row = moment_row(tree, actuator, q)
            f_0 += row.T @ _affine(actuator.bias, tree, actuator, q, row @ v)
    return ca.sparsify(f_0)


def actuator_force(
    tree: RigidTree,
    actuators: Sequence[Actuator],
    q: ca.SX,
    v: ca.SX,
    u: ca.SX,
    act: ca.SX | None = None,
) -> ca.SX:
    """Return the generalised actuator force, clipped as MuJoCo does: `qfrc_actuator`.

    Controls, the sum on a tendon, actuator forces and the sum on a joint are clipped, in this
    order.

    Args:
        tree: the mechanism.
        actuators: in the order of the controls.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.
        u: (nu, 1) controls.
        act: (na, 1) activation states; needed only where an actuator has one.

    Returns:
        (nv, 1) generalised force.
    """
    total = _routed_compensation(tree, q)
    forces = forces_of_actuators(tree, actuators, q, v, u, act)
    for actuator, force in zip(actuators, forces, strict=True):
        total += moment_row(tree, actuator, q).T @ force
    for joint in tree.joints:
        if joint.force_range is not None and joint.kind in {"slide", "hinge"}:
            total[joint.dof] = _clip(total[joint.dof], joint.force_range)
    return ca.sparsify(total)


def forces_of_actuators(
    tree: RigidTree,
    actuators: Sequence[Actuator],
    q: ca.SX,
    v: ca.SX,
    u: ca.SX,
    act: ca.SX | None = None,
) -> list[ca.SX]:
    """Return the force of each actuator along its transmission, clipped: `actuator_force`.

    Args:
        tree, actuators, q, v, u, act: as in `actuator_force`.
    """
    forces = []
    for i, actuator in enumerate(actuators):
        rate = moment_row(tree, actuator, q) @ v
        forces.append(_scalar_force(tree, actuator, q, rate, _drive(actuator, u[i], act)))
    return [
        _clip(force, actuator.force_range)
        for force, actuator in zip(_clip_tendons(tree, actuators, forces), actuators, strict=True)
    ]


def act_dot(
    tree: RigidTree,  # noqa: ARG001  # one signature with actuator_force
    actuators: Sequence[Actuator],
    q: ca.SX,  # noqa: ARG001
    v: ca.SX,  # noqa: ARG001
    u: ca.SX,
    act: ca.SX,
) -> ca.SX:
    """Return the rate of the activation states, (na, 1).

    `u` for an integrator, `(u - act)/time_constant` for filters; u is clipped. An activation's
    own range is held where it is integrated, as in MuJoCo, not here.

    Args:
        tree, q, v: mechanism and state; no activation depends on them yet.
        actuators: in the order of the controls.
        u: (nu, 1) controls.
        act: (na, 1) activation states.
    """
    rates = ca.SX(act.numel(), 1)
    for i, actuator in enumerate(actuators):
        if actuator.act is None:
            continue
        drive = _clip(u[i], actuator.ctrl_range)
        if actuator.dynamics != "integrator":
            drive = (drive - act[actuator.act]) / actuator.time_constant
        rates[actuator.act] = drive
    return rates


def _drive(actuator: Actuator, u: ca.SX, act: ca.SX | None) -> ca.SX:
    """Return what the gain multiplies: the activation if there is one, else the control."""
    if actuator.act is None:
        return _clip(u, actuator.ctrl_range)
    if act is None:
        raise UnsupportedFeatureError(
            f"actuator {actuator.name!r} has an activation state; expected `act`, found None"
        )
    return act[actuator.act]


def _scalar_force(
    tree: RigidTree, actuator: Actuator, q: ca.SX, rate: ca.SX, drive: ca.SX
) -> ca.SX:
    """Return the force along the transmission, before any force range."""
    if actuator.period:
        gap = drive - actuator_length(tree, actuator, q)
        drive = drive - actuator.period * ca.floor(gap / actuator.period + 0.5)
    force = _affine(actuator.gain, tree, actuator, q, rate) * drive
    if any(actuator.bias):
        force += _affine(actuator.bias, tree, actuator, q, rate)
    return force


def _affine(
    terms: tuple[float, float, float], tree: RigidTree, actuator: Actuator, q: ca.SX, rate: ca.SX
) -> ca.SX:
    """Return `c₀ + c₁ length + c₂ velocity`."""
    value = ca.SX(terms[0])
    if terms[1]:
        value += terms[1] * actuator_length(tree, actuator, q)
    return value + terms[2] * rate


def _clip_tendons(
    tree: RigidTree, actuators: Sequence[Actuator], forces: list[ca.SX]
) -> list[ca.SX]:
    """Scale the forces on a limited tendon such that their sum keeps its range."""
    forces = list(forces)
    for k, tendon in enumerate(tree.tendons):
        pulling = [
            i for i, a in enumerate(actuators) if a.transmission == "tendon" and a.target == k
        ]
        if tendon.force_range is None or not pulling:
            continue
        total = sum((forces[i] for i in pulling), ca.SX(0))
        clipped = _clip(total, tendon.force_range)
        # A total of zero is inside every range that MuJoCo accepts, so nothing is scaled there.
        ratio = ca.if_else(total == clipped, 1.0, clipped / ca.if_else(total == 0.0, 1.0, total))
        for i in pulling:
            forces[i] = ratio * forces[i]
    return forces


def _routed_compensation(tree: RigidTree, q: ca.SX) -> ca.SX:
    """Return the gravity compensation of the joints that route it to their actuators."""
    routed = ca.SX(tree.nv, 1)
    receivers = [joint for joint in tree.joints if joint.compensation == "actuator"]
    if not receivers:
        return routed
    compensation = gravity_compensation(tree, q)
    for joint in receivers:
        width = DOF_SIZE[joint.kind]
        rows = slice(joint.dof, joint.dof + width)
        routed[rows] = compensation[rows]
    return routed


def _clip(x: ca.SX, limits: Range) -> ca.SX:
    if limits is None:
        return x
    return ca.fmin(ca.fmax(x, limits[0]), limits[1])
