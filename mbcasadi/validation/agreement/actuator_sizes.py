"""Natural sizes of controls: what makes an actuator's terms comparable with the mechanism's.

An actuator pulls with `p = (g0 + g1 l + g2 l̇) w + b0 + b1 l + b2 l̇`, `w` its control or its
activation. The size of its length l is its arm: how far a motion of the coordinates' sizes moves
it. A force times the arm is a torque. All of it comes from the numbers of the model, so that an
actuator that has no effect somewhere has a size there too.
"""

from dataclasses import dataclass

import numpy as np

from mbcasadi.description import Actuator, RigidTree, SpatialTendon
from mbcasadi.description.actuators import Pid
from mbcasadi.validation.agreement.manifold import Array


@dataclass(frozen=True)
class ActuatorSizes:
    """Sizes of the actuators of a model, one for each control; 1 where there is nothing.

    Attributes:
        controls: (nu,) of the control.
        inputs: (nu,) of what the gain multiplies: the control, or the activation.
        torques: (nu,) torque on the coordinates that a unit of that input gives.
        activations: (na,) of the activation states.
        activation_rates: (na,) of their rates.
    """

    controls: Array
    inputs: Array
    torques: Array
    activations: Array
    activation_rates: Array


def actuator_arm(tree: RigidTree, actuator: Actuator, coordinates: Array, length: float) -> float:
    """Return the size of an actuator's length; 0 for a refused actuator.

    Args:
        tree: the mechanism.
        actuator: one of its actuators.
        coordinates: (nv,) sizes of the coordinates.
        length: of the model.
    """
    gear = np.nan_to_num(np.abs(actuator.gear))
    wrench = float(np.linalg.norm(gear[:3]) * length + np.linalg.norm(gear[3:]))
    if actuator.transmission == "site":
        return wrench
    if actuator.transmission in ("slidercrank", "body"):
        return float(gear[0] * length)
    if actuator.transmission == "tendon":
        tendon = tree.tendons[actuator.target]
        if isinstance(tendon, SpatialTendon):
            return float(gear[0]) * length
        dofs = [tree.joints[joint].dof for joint in tendon.joints]
        return float(gear[0] * np.linalg.norm(tendon.coef * coordinates[dofs]))
    joint = tree.joints[actuator.target]
    if joint.kind == "free":
        return wrench
    turn = float(np.linalg.norm(gear[:3]))
    return turn if joint.kind == "ball" else float(gear[0] * coordinates[joint.dof])


def resting_torque(actuator: Actuator, arm: float) -> float:
    """Return the size of an actuator's torque at rest, zero where no range bounds its control.

    Args:
        actuator: of the model.
        arm: size of its length.
    """
    (g0, g1, _), (b0, b1, _) = _gain(actuator), _bias(actuator)
    force = b0 + b1 * arm + (g0 + g1 * arm) * _extent(actuator.ctrl_range)
    return float(arm * min(force, _extent(actuator.force_range) or np.inf))


def damping(actuator: Actuator, arm: float) -> float:
    """Return the size of an actuator's damping of the coordinates, a torque times a time."""
    g2, b2 = _gain(actuator)[2], _bias(actuator)[2]
    return float((b2 + g2 * _extent(actuator.ctrl_range)) * arm**2)


def actuator_sizes(
    actuators: tuple[Actuator, ...], arms: Array, torque: float, rate: float, na: int
) -> ActuatorSizes:
    """Return the sizes of controls and activations.

    A control within a range has the size of its range. Any other one has that with which the
    actuator moves the mechanism as its own forces do, or moves its own set-point.

    Args:
        actuators: of the model.
        arms: (nu,) sizes of their lengths.
        torque: of the mechanism's own forces.
        rate: of its motion, 1/s.
        na: number of activation states.
    """
    nu = len(actuators)
    controls, inputs, torques = np.ones(nu), np.ones(nu), np.ones(nu)
    activations, rates = np.ones(na), np.ones(na)
    for i, (actuator, arm) in enumerate(zip(actuators, arms, strict=True)):
        terms = np.array([1.0, arm, arm * rate])
        gain, bias = float(terms @ _gain(actuator)), float(terms @ _bias(actuator))
        if gain * arm > 0:
            inputs[i] = torque / (gain * arm) + bias / gain or 1.0
            torques[i] = gain * arm
        moves = rate if actuator.dynamics == "integrator" else 1.0
        if actuator.dynamics == "muscle":  # activations from 0 to 1
            inputs[i] = 1.0
        controls[i] = _extent(actuator.ctrl_range) or inputs[i] * moves
        if actuator.act is not None:
            k = actuator.act
            activations[k] = _extent(actuator.act_range) or inputs[i]
            rates[k] = controls[i]
            if actuator.dynamics != "integrator":
                rates[k] = (controls[i] + activations[k]) / _time(actuator)
        if actuator.pid is not None:
            _of_memory(actuator.pid, inputs[i], gain, activations, rates)
    return ActuatorSizes(controls, inputs, torques, activations, rates)


def _of_memory(pid: Pid, size: float, gain: float, activations: Array, rates: Array) -> None:
    """Write the sizes of what a PID servo remembers: its integral gives as much as its gain."""
    if pid.reached is not None:
        activations[pid.reached] = size
        rates[pid.reached] = min(pid.slew, size / pid.step)
    if pid.integral is not None:
        share = abs(gain * size / pid.ki) or size
        activations[pid.integral] = min(share, pid.max_integral or share)
        rates[pid.integral] = size


def _time(actuator: Actuator) -> float:
    times = actuator.muscle_times
    return actuator.time_constant if times is None else min(times.activation, times.deactivation)


def _gain(actuator: Actuator) -> Array:
    """Return sizes of the gain's terms, (3,): constant, by length, by velocity."""
    if actuator.muscle_gain is not None:
        return np.array([actuator.muscle_gain.force, 0.0, 0.0])
    return np.asarray(np.nan_to_num(np.abs(actuator.gain)))


def _bias(actuator: Actuator) -> Array:
    """Return sizes of the bias's terms, (3,): constant, by length, by velocity."""
    terms = np.nan_to_num(np.abs(actuator.bias))
    if actuator.muscle_bias is not None:
        terms[0] += actuator.muscle_bias.force * actuator.muscle_bias.passive
    motor = actuator.motor
    if motor is not None:
        terms[0] += abs(motor.cogging[0])
        terms[0] += 0.0 if motor.bristle is None else motor.bristle.static
    return np.asarray(terms)


def _extent(limits: tuple[float, float] | None) -> float:
    """Return the largest number of a range, 0 without one."""
    return 0.0 if limits is None else max(abs(limits[0]), abs(limits[1]))
