"""Actuators: forces along their transmissions, with MuJoCo's ranges."""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.description import Actuator, RigidTree
from mbcasadi.description.actuators import DcMotor
from mbcasadi.description.tree import DOF_SIZE
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.model.activation import activation_rate, clip, clipped_controls, next_act
from mbcasadi.model.dc_motor import electrical_force, mechanical_force
from mbcasadi.model.muscle import muscle_bias, muscle_gain
from mbcasadi.model.passive import gravity_compensation
from mbcasadi.model.pid import nearest_turn, reached_setpoint, remembered_force
from mbcasadi.model.transmission import actuator_length, moment_row
from mbcasadi.spatial import is_zero


def actuation(
    tree: RigidTree, actuators: Sequence[Actuator], q: ca.SX, v: ca.SX | None = None
) -> ca.SX:
    """Return B (nv, nu) with `actuator_force = B u + f_0` inside all ranges.

    Column i is the moment of actuator i times its gain. Where an actuator has an activation
    state, u is the state that pulls.

    Args:
        tree: the mechanism.
        actuators: in the order of the controls.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity; needed only where a gain depends on it (`gain_moves`).

    Raises:
        UnsupportedFeatureError: a gain depends on velocity, and v is missing.
    """
    B = ca.SX(tree.nv, len(actuators))
    for i, actuator in enumerate(actuators):
        if v is None and actuator.gain_moves:
            raise UnsupportedFeatureError(
                f"actuator {actuator.name!r}: its gain depends on velocity; expected v, found None"
            )
        row = moment_row(tree, actuator, q)
        rate = ca.SX(0) if v is None else row @ v
        B[:, i] = row.T * gain_of(actuator, actuator_length(tree, actuator, q), rate)
    return ca.sparsify(B)


def actuator_bias(tree: RigidTree, actuators: Sequence[Actuator], q: ca.SX, v: ca.SX) -> ca.SX:
    """Return f_0 (nv, 1): the actuator force at u = 0, ranges apart.

    It holds the bias terms of servos, passive forces of muscles, cogging, and the gravity
    compensation that joints route to their actuators.

    Args:
        tree: the mechanism.
        actuators: in the order of the controls.
        q, v: (nq, 1), (nv, 1) state.
    """
    f_0 = _routed_compensation(tree, q)
    for actuator in actuators:
        if _has_bias(actuator):
            row = moment_row(tree, actuator, q)
            length, rate = actuator_length(tree, actuator, q), row @ v
            own = bias_of(actuator, length, rate) + unbounded_force(actuator, length, rate, None)
            f_0 += row.T @ own
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
    rows = [moment_row(tree, actuator, q) for actuator in actuators]
    forces = forces_of_actuators(tree, actuators, q, v, u, act)
    total = _routed_compensation(tree, q)
    for actuator, row, force in zip(actuators, rows, forces, strict=True):
        length, rate = actuator_length(tree, actuator, q), row @ v
        total += row.T @ (force + unbounded_force(actuator, length, rate, act))
    for joint in tree.joints:
        if joint.force_range is not None and joint.kind in {"slide", "hinge"}:
            total[joint.dof] = clip(total[joint.dof], joint.force_range)
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
    drives, clipped = acting_inputs(tree, actuators, q, v, u, act), clipped_controls(actuators, u)
    forces = []
    for i, actuator in enumerate(actuators):
        motion = actuator_length(tree, actuator, q), moment_row(tree, actuator, q) @ v
        force = _scalar_force(actuator, motion, drives[i], clipped, act)
        forces.append(force + memory_force(actuator, motion[0], drives[i], clipped[i], act))
    return _clip_forces(actuators, _clip_tendons(tree, actuators, forces))


def acting_inputs(
    tree: RigidTree,
    actuators: Sequence[Actuator],
    q: ca.SX,
    v: ca.SX,
    u: ca.SX,
    act: ca.SX | None,
) -> ca.SX:
    """Return w (nu, 1), what the gains multiply: the activation if there is one, else the control.

    With `actearly` it is the activation of the next step; of PID servos no more than what the rate
    of their set-point allows.

    Raises:
        UnsupportedFeatureError: an actuator has an activation state, and `act` is missing.
    """
    w = clipped_controls(actuators, u)
    later: dict[float, ca.SX] = {}
    for i, actuator in enumerate(actuators):
        stateful = actuator.act is not None or actuator.pid is not None
        if act is None and (stateful or _needs_states(actuator.motor)):
            raise UnsupportedFeatureError(
                f"actuator {actuator.name!r} has an activation state; expected `act`, found None"
            )
        if act is None:
            continue
        step = actuator.ahead
        if step and step not in later:
            later[step] = next_act(tree, actuators, q, v, u, act, step)
        if actuator.act is not None:
            w[i] = (later[step] if step else act)[actuator.act]
        if actuator.pid is not None:
            w[i] = reached_setpoint(actuator, w[i], act)
    return w


def memory_force(
    actuator: Actuator, length: ca.SX, drive: ca.SX, u: ca.SX, act: ca.SX | None
) -> ca.SX:
    """Return the force that a PID servo adds to its gain and bias; zero for others.

    Args:
        actuator: the actuator.
        length: of it.
        drive: what its gain multiplies.
        u: its control inside its range.
        act: (na, 1) all activations.
    """
    if actuator.pid is None or act is None or not actuator.acts:
        return ca.SX(0)
    error = nearest_turn(actuator.period, drive, length) - length
    rate = ca.SX(0)
    if actuator.act is not None and actuator.pid.rate_gain:
        rate = activation_rate(actuator, u, act[actuator.act])
    return remembered_force(actuator.pid, error, rate, act)


def _needs_states(motor: DcMotor | None) -> bool:
    return motor is not None and not (motor.thermal is None and motor.bristle is None)


def gain_of(actuator: Actuator, length: ca.SX, rate: ca.SX) -> ca.SX:
    """Return the gain of an actuator at a length and its rate."""
    if actuator.muscle_gain is not None:
        return muscle_gain(actuator.muscle_gain, length, rate)
    return _affine(actuator.gain, length, rate)


def bias_of(actuator: Actuator, length: ca.SX, rate: ca.SX) -> ca.SX:
    """Return the bias of an actuator at a length and its rate."""
    if actuator.muscle_bias is not None:
        return muscle_bias(actuator.muscle_bias, length)
    return _affine(actuator.bias, length, rate)


def unbounded_force(actuator: Actuator, length: ca.SX, rate: ca.SX, act: ca.SX | None) -> ca.SX:
    """Return the force of an actuator that no range counts for."""
    if actuator.motor is None or not actuator.acts:
        return ca.SX(0)
    return mechanical_force(actuator.motor, length, rate, act)


def _has_bias(actuator: Actuator) -> bool:
    affine = not all(map(is_zero, actuator.bias))
    return affine or actuator.muscle_bias is not None or actuator.motor is not None


def _scalar_force(
    actuator: Actuator,
    motion: tuple[ca.SX, ca.SX],
    drive: ca.SX,
    u: ca.SX,
    act: ca.SX | None,
) -> ca.SX:
    """Return the force along the transmission, before any force range.

    Args:
        actuator: the actuator.
        motion: its length and rate.
        drive: what its gain multiplies.
        u, act: (nu, 1) all controls in their ranges, (na, 1) all activations.
    """
    (length, rate), motor = motion, actuator.motor
    if not actuator.acts:
        return ca.SX(0)
    if motor is not None and not motor.affine:
        own = ca.vertcat(ca.SX(0, 1), *(u[k] for k in motor.controls))
        return electrical_force(motor, own, length, rate, act)
    drive = nearest_turn(actuator.period, drive, length)
    return gain_of(actuator, length, rate) * drive + bias_of(actuator, length, rate)


def _affine(terms: tuple[float, float, float], length: ca.SX, rate: ca.SX) -> ca.SX:
    """Return `c₀ + c₁ length + c₂ velocity`."""
    value = ca.SX(terms[0])
    if not is_zero(terms[1]):
        value += terms[1] * length
    return value + terms[2] * rate


def _clip_forces(actuators: Sequence[Actuator], forces: list[ca.SX]) -> list[ca.SX]:
    """Return the forces inside their ranges; several controls of one actuator share a range."""
    clipped = list(forces)
    for i, actuator in enumerate(actuators):
        if actuator.leader is None:
            clipped[i] = clip(forces[i], actuator.force_range)
            continue
        if actuator.leader == i:
            own = [k for k, other in enumerate(actuators) if other.leader == i]
            total = sum((forces[k] for k in own), ca.SX(0))
            clipped[i] = clip(total, actuator.force_range)
        else:
            clipped[i] = ca.SX(0)
    return clipped


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
        clipped = clip(total, tendon.force_range)
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
