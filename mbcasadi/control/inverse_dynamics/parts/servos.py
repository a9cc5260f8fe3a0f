"""The servos of a controller: what each one does to the motion during a tick, as numbers.

A servo is an actuator whose force depends on its length or its speed. Its map over a tick is that
of `servo_map.py` with the inertia I that the actuator sees, all other joints free and the loops
closed: the median of `1 / (bᵀ Y b)` over poses, where `Y b` is the acceleration by a unit force.
Only the share of K₂ that depends on I is an approximation. For a plant of one implicit step a tick
there is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.parts.servo_map import (
    UNDAMPED_EULER,
    Coordinate,
    TickMap,
    tick_map,
)
from mbcasadi.errors import ProblemError
from mbcasadi.model.transmission import moment_row
from mbcasadi.shapes import require_choice
from mbcasadi.system import System, evaluate
from mbcasadi.system.actuator_model import actuator_model, servo_indices
from mbcasadi.system.ranges import require_ranges

Array = NDArray[np.float64]

SERVO_PLANTS = (
    "model",
    "continuous",
    "euler",
    "rk4",
    "implicit",
    "implicitfast",
    "discrete",
    "start",
)

STEPPED = ("euler", UNDAMPED_EULER, "implicit", "implicitfast", "discrete")
"""Rules that advance the position by the velocity at the end of their step."""

GAINS_OF_SERVOS = ("actuator", "bias")
"""Kind and attribute of a parameter."""

WHOLE = 1e-6
"""A period within this relative rounding of a multiple of the time step counts as that multiple."""

LEAST_INERTIA = 1e-9
"""Share of the largest inertia, in the sizes of the coordinates, that completes a singular one."""


@dataclass(frozen=True)
class ServoPlant:
    """What steps the servos between two ticks.

    Attributes:
        rule: one of `SERVO_PLANTS` but "model".
        timestep: of a simulation, s; the period for "continuous" and "start".
        period: of the controller, s.
        delay: ticks from a measurement to the moment at which its control acts.
    """

    rule: str
    timestep: float
    period: float
    delay: int

    @property
    def turning(self) -> float:
        """Share of a tick in which the plant takes account of moments that turn."""
        if self.rule in ("continuous", "rk4"):
            return 1.0
        return 1.0 - self.timestep / self.period

    @property
    def advance_share(self) -> float:
        """Share c of the position `q + h v + c h² a` at the end of a tick: ½, or more in MuJoCo."""
        return 0.5 * (1.0 + self.timestep / self.period) if self.rule in STEPPED else 0.5

    def map_of(self, servo: Coordinate) -> TickMap:
        """Return the map of a servo over a tick; that of "start" is a constant force."""
        if self.rule == "start":
            servo = Coordinate(servo.inertia, 0.0, 0.0)
            return tick_map(servo, "continuous", self.timestep, self.period)
        return tick_map(servo, self.rule, self.timestep, self.period)


@dataclass(frozen=True)
class Servos:
    """All servos of a controller, one entry each.

    Attributes:
        actuators: their indices.
        names: of all actuators.
        coordinates: each with the inertia that it sees in the median over poses.
        inertias: (poses, k) of these.
        usual_accelerations: (k,) of the motion that gravity or springs cause.
        maps: over a tick.
        plant: what the maps are those of.
    """

    actuators: tuple[int, ...]
    names: tuple[str, ...]
    coordinates: tuple[Coordinate, ...]
    inertias: Array
    usual_accelerations: Array
    maps: tuple[TickMap, ...]
    plant: ServoPlant

    @property
    def memory_names(self) -> tuple[str, ...]:
        """Entries of z: what was commanded during the delay, oldest first; see `ServoState`."""
        servos = [self.names[i] for i in self.actuators]
        names = [f"acceleration.{name}" for name in servos]
        names += [*(f"planned.{name}" for name in servos), "commanded"]
        return tuple(f"{name}.{k}" for k in range(self.plant.delay, 0, -1) for name in names)

    def inertia(self, system: System, q: Array) -> Array:
        """Return the inertia (nv, nv) at a pose, with what the servos add to it during a tick."""
        assert system.tree is not None
        rows = [moment_row(system.tree, system.actuators[i], ca.SX(q)) for i in self.actuators]
        B = np.array(ca.evalf(ca.vertcat(*rows)))
        added = np.array([each.added_inertia for each in self.maps])
        M: Array = np.array(system.mass_matrix(q)) + B.T @ (added[:, None] * B)
        return M

    def column(self, name: str) -> ca.DM:
        """Return one number of all maps."""
        return ca.DM([getattr(each, name) for each in self.maps])

    @property
    def stiffness(self) -> ca.DM:
        """The gains kp of the servos."""
        return ca.DM([each.kp for each in self.coordinates])

    @property
    def damping(self) -> ca.DM:
        """The gains kd of the servos."""
        return ca.DM([each.kd for each in self.coordinates])


def servos_of(system: System, plant: ServoPlant) -> Servos | None:
    """Return the servos of a system, or None where none changes its force during a tick.

    Raises:
        ProblemError: options that contradict themselves; a servo that is too fast for the period.
    """
    if plant.rule == "start" and not plant.delay:
        return None
    indices = servo_indices(system)
    _require_known_gains(system)
    if not indices:
        return None
    samples = _sampled(system, indices)
    inertias = np.array([sample[0] for sample in samples])
    inertia, damping = (np.median([x[k] for x in samples], axis=0) for k in range(2))
    coordinates = tuple(
        Coordinate(float(seen), -servo.bias[1], -servo.bias[2], float(d), servo.explicit)
        for seen, d, servo in zip(
            inertia, damping, (system.actuators[i] for i in indices), strict=True
        )
    )
    maps = tuple(plant.map_of(each) for each in coordinates)
    _require_effect(system.actuator_names, indices, maps, plant)
    usual = np.median([sample[2] for sample in samples], axis=0)
    return Servos(indices, system.actuator_names, coordinates, inertias, usual, maps, plant)


def _require_known_gains(system: System) -> None:
    """Raise where the gains of servos are parameters: the map over a tick is made of numbers."""
    unknown = [i.name for i in system.parameters.items if (i.kind, i.attribute) == GAINS_OF_SERVOS]
    if unknown:
        raise ProblemError(
            f"parameters {', '.join(unknown)}: how a servo changes its force during a tick is "
            "computed from numbers; leave them out, set them with system.at(...), or give "
            'servo_plant="start" without a delay, which takes the force at the start of each tick'
        )


def servo_note(plant: ServoPlant) -> str:
    """Return a plant in words; the flag `eulerdamp` is left out."""
    rule = "euler" if plant.rule == UNDAMPED_EULER else plant.rule
    step = "" if rule in ("continuous", "start") else f" with steps of {plant.timestep:g} s"
    return f"{rule}{step}, delay {plant.delay}"


def servo_plant_of(
    system: System, given: str, step: float | None, period: float, delay: int
) -> ServoPlant:
    """Return what steps the servos: what is given, or the model's own integrator.

    The model's time step counts as the period where the period is no multiple of it.

    Args:
        system: the mechanism.
        given: one of `SERVO_PLANTS`.
        step: of a simulation, s, or None.
        period: of the controller, s.
        delay: ticks from a measurement to the moment at which its control acts.

    Raises:
        ProblemError: a time step that does not divide the period, or belongs to no simulation.
    """
    require_choice("servo_plant", given, SERVO_PLANTS)
    rule, tree = given, system.tree
    if rule == "model" and tree is not None:
        rule = tree.integration.rule
        if rule == "euler" and not tree.integration.implicit_damping:
            rule = UNDAMPED_EULER
    if rule in ("continuous", "start", "model"):
        if step is not None:
            raise ProblemError(
                f"servo_timestep = {step:g} s with servo_plant = {given!r}, which has "
                "no time step; leave it out"
            )
        return ServoPlant(rule, period, period, delay)
    if step is None and tree is not None:
        model_step = tree.integration.timestep
        step = model_step if _is_multiple(period, model_step) else period
    if step is None or not _is_multiple(period, step):
        raise ProblemError(
            f"servo_timestep is {step} s; expected a divisor of the period {period:g} s"
        )
    return ServoPlant(rule, step, period, delay)


def _is_multiple(period: float, step: float) -> bool:
    ratio = period / step if step > 0 else 0.0
    return ratio > 1 - WHOLE and abs(ratio - round(ratio)) <= WHOLE * ratio


def _require_effect(
    names: Sequence[str], indices: Sequence[int], maps: Sequence[TickMap], plant: ServoPlant
) -> None:
    """Raise where a force at the start of the tick does not accelerate over the tick."""
    for i, each in zip(indices, maps, strict=True):
        if not each.fall > 0 or not np.isfinite(each.fall):
            raise ProblemError(
                f"actuator '{names[i]}': during a tick of {plant.period:g} s the servo turns a "
                "force at its start into the opposite acceleration; expected a shorter period, or "
                "a softer servo"
            )


def _loop_rows(system: System, q: Array, v: Array) -> Array:
    return np.asarray(evaluate(system.loop_jacobian, {"q": q, "v": v, "t": 0.0}).full())


def _sampled(system: System, indices: Sequence[int]) -> list[tuple[Array, Array, Array]]:
    """Return inertia, damping and usual acceleration (k,) of the servos at closed poses."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    ranges = require_ranges(system, None, None)
    model = actuator_model(system, ranges, 1.0, q, ca.SX(system.nv, 1), None)
    damping = -ca.jacobian(system.passive_force(q, v), v)
    at = ca.Function("at", [q, v], [ca.densify(model.moment), ca.densify(damping)])
    still, size, samples = np.zeros(system.nv), system.scales.coordinates, []
    for pose, rates in system.scales.states:
        B, D = (np.asarray(x) for x in at(pose, still))
        M = np.asarray(system.mass_matrix(pose)) * np.outer(size, size)
        least = LEAST_INERTIA * max(np.abs(M).max(), np.finfo(float).tiny)
        inverse = np.linalg.pinv(M + least * np.eye(len(M)), hermitian=True)
        if system.nc:
            A = _loop_rows(system, pose, rates) * size
            through = A @ inverse
            inverse = inverse - through.T @ np.linalg.pinv(A @ through.T, rcond=1e-9) @ through
        push = (B * size[:, None])[:, list(indices)]
        mobility = np.maximum(np.einsum("ij,ij->j", push, inverse @ push), np.finfo(float).tiny)
        shape = size[:, None] * (inverse @ push) / mobility  # motion of unit speed of the actuator
        usual = system.scales.rate**2 * np.abs(push).sum(axis=0)
        samples.append((1 / mobility, np.einsum("ij,ij->j", shape, D @ shape), usual))
    return samples
