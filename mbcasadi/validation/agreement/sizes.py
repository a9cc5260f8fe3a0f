"""Natural sizes of a mechanism, from its model and MuJoCo alone.

A comparison in fixed numbers hides the errors of small mechanisms and finds rounding in large ones.
Here every state is drawn in, and every quantity is divided by, a size of the mechanism itself, so
that a model in other units gives the same numbers. The `System` that is compared has no part in
them: a wrong one must not choose how it is judged.
"""

from dataclasses import dataclass

import mujoco
import numpy as np

from mbcasadi.description import RigidTree
from mbcasadi.description.tree import QPOS_SIZE
from mbcasadi.mjcf import ModelData, read
from mbcasadi.system.natural_sizes import model_length, tree_scales
from mbcasadi.system.sizes import known_residual_sizes
from mbcasadi.validation.agreement import equality_rows
from mbcasadi.validation.agreement.actuator_sizes import (
    ActuatorSizes,
    actuator_arm,
    actuator_sizes,
    damping,
    resting_torque,
)
from mbcasadi.validation.agreement.manifold import Array, inertia, integrate

POSES = 8
"""At random, where the mechanism is measured."""


@dataclass(frozen=True)
class Sizes:
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


def measure_sizes(model: mujoco.MjModel) -> Sizes:
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
    return Sizes(
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
    return np.asarray(np.linalg.norm(equality_rows.jacobian(model, data) * size, axis=1))


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
