"""Natural sizes of a mechanism, from its model and MuJoCo alone.

A comparison in fixed numbers hides the errors of small mechanisms and finds rounding in large ones.
Here every state is drawn in, and every quantity is divided by, a size of the mechanism itself, so
that a model in other units gives the same numbers. The `System` that is compared has no part in
them: a wrong one must not choose how it is judged.

An actuator pulls with `p = (g0 + g1 l + g2 l̇) w + b0 + b1 l + b2 l̇`, `w` its control or its
activation. The size of its length l is its arm: how far a motion of the coordinates' sizes moves
it. A force times the arm is a torque. All of it comes from the numbers of the model, so that an
actuator that has no effect somewhere has a size there too.
"""

from dataclasses import dataclass

import mujoco
import numpy as np

from mbcasadi.description import Actuator, RigidTree, SpatialTendon
from mbcasadi.description.actuators import Pid
from mbcasadi.description.tree import QPOS_SIZE
from mbcasadi.mjcf import ModelData, read
from mbcasadi.system.natural_sizes import model_length, tree_scales
from mbcasadi.system.sizes import known_residual_sizes
from mbcasadi.validation.agreement.manifold import Array, equality_jacobian, inertia, integrate


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


POSES = 8
"""At random, where the mechanism is measured."""


@dataclass(frozen=True)
class QuantitySizes:
    """Natural sizes of a mechanism.

    Attributes:
        length: of the model, m.
        rate: of its motions, 1/s: by gravity; without it by springs and actuators, else by
            dampers. With none of them time has no unit that counts, and the rate is 1.
        coordinates: (nv,) 1 rad, or the length.
        configuration: (nq,) the same for q, 1 for quaternions.
        inertia: `tr(D M D)`, D the coordinates' sizes; its root mean square over poses.
        rows: (nc,) of the residuals: what is known of their unit, or their length over poses
            where that is more.
        actuators: of controls and activations.
    """

    length: float
    rate: float
    coordinates: Array
    configuration: Array
    inertia: float
    rows: Array
    actuators: ActuatorSizes

    def energy(self, M: Array) -> float:
        """Return the size of energies at a state, `rate² tr(D M D)`: that of vᵀ M v."""
        here = float(np.sum(self.coordinates**2 * np.diag(M)))
        return self.rate**2 * (here if here > 0 else self.inertia)

    def roots(self, M: Array) -> Array:
        """Return (nv,) `M_ii^½`, the metric of the inertia, rounding errors of zero left out."""
        least = np.finfo(float).eps * self.inertia / self.coordinates**2
        return np.sqrt(np.maximum(np.diag(M), least))


def measure_sizes(model: mujoco.MjModel) -> QuantitySizes:
    """Return the sizes of a model; deterministic.

    Args:
        model: a copy without forces of MuJoCo's solver (`smooth_copy`).
    """
    numbers = read(model)
    tree = numbers.tree
    length, size = model_length(tree), tree_scales(tree)
    poses = _Poses.measure(model, numbers, size)
    mass = poses.inertia or sum(body.mass for body in tree.bodies) * length**2 or 1.0
    arms = np.array([actuator_arm(tree, a, size, length) for a in numbers.actuators])
    rate = _rate(numbers, poses, mass, arms)
    torque = rate**2 * poses.inertia / max(tree.nv, 1)
    return QuantitySizes(
        length=length,
        rate=rate,
        coordinates=size,
        configuration=_configuration_sizes(tree, length),
        inertia=mass,
        rows=poses.rows,
        actuators=actuator_sizes(numbers.actuators, arms, torque, rate, int(model.na)),
    )


@dataclass(frozen=True)
class _Poses:
    """What MuJoCo gives at random poses, root mean squares.

    Attributes:
        inertia: `tr(D M D)`.
        springs: `|D f|` of the passive force at rest.
        dampers: `D f`, what a velocity of the coordinates' sizes adds to it.
        rows: (nc,) sizes of the constraints' rows.
    """

    inertia: float
    springs: float
    dampers: float
    rows: Array

    @staticmethod
    def measure(model: mujoco.MjModel, numbers: ModelData, size: Array) -> "_Poses":
        rng, data = np.random.default_rng(0), mujoco.MjData(model)
        measured, lengths = [], []
        for _ in range(POSES):
            data.qpos = integrate(model, model.qpos0, size * rng.standard_normal(model.nv))
            data.qvel = 0.0
            mujoco.mj_forward(model, data)
            at_rest = np.array(data.qfrc_passive)
            trace = float(np.sum(size**2 * np.diag(inertia(model, data))))
            lengths.append(_row_lengths(model, data, numbers, size))
            data.qvel = size
            mujoco.mj_fwdVelocity(model, data)
            added = np.abs(size * (data.qfrc_passive - at_rest)).sum()
            measured.append(np.array([trace, np.linalg.norm(size * at_rest), added]))
        known = _known_rows(numbers)
        rows = np.maximum(known, _usual(lengths))
        mass, springs, dampers = _usual(measured)
        return _Poses(float(mass), float(springs), float(dampers), np.where(rows > 0, rows, 1.0))


def _usual(values: list[Array]) -> Array:
    return np.asarray(np.sqrt(np.mean(np.square(values), axis=0)))


def _row_lengths(
    model: mujoco.MjModel, data: mujoco.MjData, numbers: ModelData, size: Array
) -> Array:
    """Return (nc,) `|A_i D|`; nothing where a constraint is refused, and none can be compared."""
    if numbers.refused_rows or not any(equality.active for equality in numbers.equalities):
        return np.zeros(0)
    return np.asarray(np.linalg.norm(equality_jacobian(model, data) * size, axis=1))


def _known_rows(numbers: ModelData) -> Array:
    """Return (nc,) sizes of residuals whose unit is known, zero elsewhere."""
    if numbers.refused_rows:
        return np.zeros(0)
    blocks = [np.zeros(0)]
    for equality in numbers.equalities:
        if equality.active:
            known = known_residual_sizes(numbers.tree, equality)
            blocks.append(np.zeros(equality.size) if known is None else known)
    return np.concatenate(blocks)


def _configuration_sizes(tree: RigidTree, length: float) -> Array:
    size = np.ones(tree.nq)
    for joint in tree.joints:
        count = {"slide": QPOS_SIZE["slide"], "free": 3}.get(joint.kind, 0)
        size[joint.qpos : joint.qpos + count] = length
    return size


def _rate(numbers: ModelData, poses: _Poses, mass: float, arms: Array) -> float:
    """Return the rate of the motions that the model's own forces cause, 1/s."""
    gravity = float(np.linalg.norm(numbers.tree.gravity))
    if gravity > 0:
        return float(np.sqrt(gravity / model_length(numbers.tree)))
    pairs = list(zip(numbers.actuators, arms, strict=True))
    static = poses.springs + sum(resting_torque(actuator, arm) for actuator, arm in pairs)
    if static > 0:
        return float(np.sqrt(static / mass))
    return (poses.dampers + sum(damping(actuator, arm) for actuator, arm in pairs)) / mass or 1.0
