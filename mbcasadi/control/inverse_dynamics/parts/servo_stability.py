"""Whether the loop of task, servo map and servo is stable, joint by joint, with a wrong inertia.

One servo alone, its task `α_des = -kp l - kd l̇`, with the inertia I that it sees at a pose in the
equations and `s I` in the plant: sampled, delayed, it is a linear map of what is known at a tick,
and the loop is stable where no eigenvalue is outside the unit circle.
"""

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.parts.servo_map import Coordinate, TickMap, tick_map
from mbcasadi.control.inverse_dynamics.parts.servos import ServoPlant, Servos
from mbcasadi.control.tick.design import Design
from mbcasadi.errors import ProblemError

Array = NDArray[np.float64]

WRONG_INERTIA = (0.7, 1.0, 1.3)
"""Shares s of the inertia of the equations that the plant may have."""

ON_THE_CIRCLE = 1e-6
"""A mode that neither grows nor fades: a task without stiffness, a bound of rounding."""


def require_stable(design: Design, servos: Servos) -> None:
    """Raise where a servo follows a task with growing oscillations.

    Actuators with an activation state are left out: the map does not hold for their loop.

    Raises:
        ProblemError: names the actuator, the task and the numbers.
    """
    gains = _gains(design)
    for k, i in enumerate(servos.actuators):
        if design.system.actuators[i].act is not None:
            continue
        seen = servos.inertias[:, k]
        poses = {float(np.min(seen)), float(np.median(seen)), float(np.max(seen))}
        for inertia, share, (task, pair) in product(sorted(poses), WRONG_INERTIA, gains):
            true = replace(servos.coordinates[k], inertia=share * inertia)
            growth = _growth(servos, k, (inertia, true), pair)
            if not growth <= 1 + ON_THE_CIRCLE:
                raise ProblemError(_message(servos, k, (inertia, share), task, growth))


def _gains(design: Design) -> list[tuple[str, tuple[float, float]]]:
    """Return (task, (kp, kd)) of all rows that have a weight and a position behind them."""
    pairs: dict[tuple[float, float], str] = {}
    for task, gains in zip(design.tasks, design.gains, strict=True):
        for kp, kd, weight in zip(gains.kp, gains.kd, gains.weight, strict=True):
            if weight > 0 and kd > 0:
                pairs.setdefault((float(kp), float(kd)), task.name)
    return [(task, pair) for pair, task in pairs.items()]


def _growth(
    servos: Servos, k: int, inertias: tuple[float, Coordinate], gains: tuple[float, float]
) -> float:
    """Return the largest growth of a mode in one tick.

    Args:
        servos: of the controller.
        k: which one.
        inertias: that of the equations, and the coordinate of the plant.
        gains: kp, kd of the task.
    """
    plant = servos.plant
    actual = plant.map_of(inertias[1])
    if plant.rule == "start":  # the equations take the force for constant; it changes all the same
        actual = tick_map(inertias[1], "continuous", plant.timestep, plant.period)
    columns = [
        _tick(state, inertias, (servos.maps[k], actual), gains, plant)
        for state in np.eye(2 + 2 * plant.delay)
    ]
    return float(np.abs(np.linalg.eigvals(np.array(columns).T)).max())


def _tick(
    state: Array,
    inertias: tuple[float, Coordinate],
    maps: tuple[TickMap, TickMap],
    gains: tuple[float, float],
    plant: ServoPlant,
) -> Array:
    """Return the state (length, rate, what z remembers, pending controls) a tick later."""
    known, true = inertias
    model, actual = maps
    d, h = plant.delay, plant.period
    length, rate = state[:2]
    commanded, pending = list(state[2 : 2 + d]), list(state[2 + d :])
    desired = -gains[0] * length - gains[1] * rate
    there, speed = length, rate
    for beta in commanded:
        predicted = beta - model.by_length * there - model.by_rate * speed
        there += model.length_by_acceleration * predicted + model.length_by_rate * speed
        speed += h * predicted
    load = true.damping * rate
    start = known * desired + load + model.added_inertia * desired - model.drift * speed
    commanded.append(desired + model.by_length * there + model.by_rate * speed)
    pending.append(start + true.kp * there + true.kd * speed)
    force = pending.pop(0) - true.kp * length - (true.kd + true.damping) * rate
    acceleration = actual.fall * force / true.inertia + actual.decay * rate
    length += actual.length_by_acceleration * acceleration + actual.length_by_rate * rate
    rate += h * acceleration
    return np.array([length, rate, *commanded[1:], *pending])


def _message(servos: Servos, k: int, inertia: tuple[float, float], task: str, growth: float) -> str:
    """Return what is unstable and what to do.

    Args:
        servos, k: of the controller, and which one.
        inertia: of the equations, and the plant's share of it.
        task: its name.
        growth: of a mode in one tick.
    """
    plant, servo = servos.plant, servos.coordinates[k]
    advice = "lower gains of the task"
    if plant.rule == "start":
        advice = 'another servo_plant than "start"'
    return (
        f"actuator '{servos.names[servos.actuators[k]]}': its loop with the task '{task}' is "
        f"unstable, {growth:.4g} times larger every tick: kp = {servo.kp:g} and kd = {servo.kd:g} "
        f"on {inertia[1]:g} times the inertia {inertia[0]:.3g}, period {plant.period:g} s, "
        f"servo_plant {plant.rule!r} with steps of {plant.timestep:g} s, delay {plant.delay}; "
        f"expected {advice}, a shorter period or a softer servo"
    )
