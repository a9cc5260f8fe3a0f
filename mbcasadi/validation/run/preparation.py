"""What the runs of a trial have in common: the plant, its start, the controller, the reference.

Where nothing is given, the reference is the one that stays, and the time step one that fits.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, runtime_checkable

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control import ControlLaw, InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.actuator_delay import ticks_of
from mbcasadi.control.inverse_dynamics.parts.servos import ServoPlant, servo_note
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant, Source
from mbcasadi.shapes import count_of_periods
from mbcasadi.system.actuator_model import servo_indices
from mbcasadi.validation.closed_loop import (
    Controllable,
    Runnable,
    TimeSignal,
    as_runnable,
    model_with_sensors,
    require_pushes,
    steps_per_tick,
)
from mbcasadi.validation.closed_loop.closed_loop import divides
from mbcasadi.validation.trial import Trial

Controlled = Controller | HasController | Runnable


def integrator_of(plant: Plant) -> str:
    """Return the name of a plant's integrator, as the option `servo_plant` has it."""
    name = str(mujoco.mjtIntegrator(plant.model.opt.integrator).name)
    return name.removeprefix("mjINT_").lower()


def delay_ticks(plant: Plant, period: float) -> int:
    """Return by how many ticks controls act later by the plant's own actuators."""
    return ticks_of(plant.actuator_delay, period)


def fitted_to_plant(controller: Controlled, plant: Plant, delay: int) -> Controlled:
    """Return the controller with the delay, and the map of its servos in this plant.

    What the controller was given stays: a `servo_plant` other than "model", a `delay`.

    Args:
        controller: of the run.
        plant: its integrator and time step.
        delay: ticks from a measurement to the moment at which its control acts.
    """
    if not isinstance(controller, InverseDynamicsQP):
        return controller
    if not servo_indices(controller.system):
        counts = controller.observer, controller.joint_limits, controller.force_feedback
        predicted = any(counts) and controller.delay is None and delay > 0
        return replace(controller, delay=delay) if predicted else controller
    if controller.servo_plant == "start":
        return controller
    delay, given = (delay if controller.delay is None else controller.delay), controller.delay or 0
    known, tree = controller.plant_of_servos, controller.system.tree
    if controller.servo_plant != "model" or controller.servo_timestep is not None or tree is None:
        return controller if delay == given else replace(controller, delay=delay)
    rule = integrator_of(plant)
    if (tree.integration.rule, known.timestep, given) == (rule, plant.timestep, delay):
        return controller
    same = rule == tree.integration.rule
    return replace(
        controller,
        servo_plant="model" if same else rule,
        servo_timestep=plant.timestep,
        delay=delay,
    )


def fitted_to_trial(controller: Controlled, model: Source, trial: Trial) -> Controlled:
    """Return the controller as a run of the trial has it: for its delay and its plant's servos.

    Raises:
        ModelError, ProblemError: as `prepare`.
    """
    if not isinstance(controller, InverseDynamicsQP):
        return controller
    plants = PlantFactory(model, trial.rigid, trial.scenario.timestep)
    plant = plants_for_period(plants, plants.make(), controller.period).plant
    return fitted_to_plant(controller, plant, trial.delay)


def servo_notes(controller: Controller, plant: Plant, delay: int) -> list[str]:
    """Return a note where a controller's servos were made for another plant or delay."""
    made_for = controller.notes.get("servos", "")
    late = delay + delay_ticks(plant, controller.period)
    here = ServoPlant(integrator_of(plant), plant.timestep, controller.period, late)
    if not made_for or made_for == servo_note(here):
        return []
    return [f"The law's servos are those of {made_for}; the plant is {servo_note(here)}."]


Array = NDArray[np.float64]


@dataclass(frozen=True)
class PlantFactory:
    """The plant of a run: its model, options and parameter errors.

    Attributes:
        model, rigid, timestep, perturb, seed: arguments of `Plant`.
    """

    model: Source
    rigid: bool = False
    timestep: float | None = None
    perturb: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None

    def make(self, with_errors: bool = True) -> Plant:
        """Return a new plant, with its parameter errors or without."""
        return Plant(
            self.model,
            rigid=self.rigid,
            timestep=self.timestep,
            perturb=self.perturb if with_errors else None,
            seed=self.seed if with_errors else None,
        )


class Prepared(NamedTuple):
    """A trial before its first run.

    Attributes:
        given: the controller as the user gave it, as what can run.
        controller: the same with delay and servos of the plant.
        plants, plant: of the runs, and one of them.
        start: configuration, before it is moved onto the equality constraints.
        reference: of the user, or the one that stays.
        notes: on what was not given.
    """

    given: Controlled
    controller: Controlled
    plants: PlantFactory
    plant: Plant
    start: ArrayLike | None
    reference: TimeSignal
    notes: tuple[str, ...]


def prepare(controller: Controllable, model: Source, trial: Trial) -> Prepared:
    """Return what the runs of a trial have in common.

    Raises:
        MbcasadiError: controller, model and trial do not fit together, as `validate` says.
    """
    options = trial.scenario
    if trial.sensors is not None:
        model = model_with_sensors(trial.sensors, model)
    plants = PlantFactory(model, trial.rigid, options.timestep, dict(trial.perturb), options.seed)
    plant = plants.make()
    given = as_runnable(controller, plant, trial.period)
    plants, plant, notes = plants_for_period(plants, plant, period_of(given))
    count_of_periods("duration", trial.duration, period_of(given))
    require_pushes(trial.pushes, plant)
    start = initial_configuration(plant, trial.q0, options.keyframe)
    fitted = fitted_to_plant(given, plant, trial.delay)
    stay = reference_or_stay(fitted, trial.reference, plant, start, options.outer is not None)
    return Prepared(given, fitted, plants, plant, start, stay.reference, notes + stay.notes)


def initial_configuration(
    plant: Plant, q0: ArrayLike | None, keyframe: str | None
) -> ArrayLike | None:
    """Return q0, or the configuration of the plant's key frame.

    Raises:
        ProblemError: both are given.
        UnknownNameError: no such key frame.
    """
    if keyframe is None:
        return q0
    if q0 is not None:
        raise ProblemError("give q0 or keyframe, not both")
    return plant.keyframe(keyframe)


@runtime_checkable
class HoldsPose(Protocol):
    """A controller that knows the reference of rest at a pose."""

    def reference_at(self, q: ArrayLike) -> Array: ...  # noqa: D102


class Stay(NamedTuple):
    """The reference of a run, and a note where it is that of the start."""

    reference: TimeSignal
    notes: tuple[str, ...] = ()


def reference_or_stay(
    given: object, reference: TimeSignal, plant: Plant, q0: ArrayLike | None, computed: bool
) -> Stay:
    """Return the reference; where there is none, the controller's own, or that of the start.

    A regulator and an MPC have the setpoint that they were designed about. Other laws and
    `InverseDynamicsQP` hold the start at rest.

    Args:
        given: the controller as the user gave it.
        reference: of the user, or None.
        plant: is reset to the start, which may be moved onto its equality constraints.
        q0: of the user.
        computed: another law computes the reference.
    """
    if reference is not None or computed or not isinstance(given, HoldsPose):
        return Stay(reference)
    if isinstance(given, ControlLaw):
        if not given.nref:
            return Stay(None)
        nominal = given.nominal_reference
        if nominal is not None:
            text = "No reference was given: the run has the controller's own setpoint."
            return Stay(nominal, (text,))
    plant.reset(q0)
    held = given.reference_at(plant.q)
    if not held.size:
        return Stay(None)
    return Stay(held, ("No reference was given: the run holds the start, at rest.",))


def period_of(controller: Controlled) -> float:
    """Return the period, s; an `InverseDynamicsQP` is not built for it."""
    if isinstance(controller, InverseDynamicsQP):
        return controller.period
    data = controller if isinstance(controller, Controller) else controller.controller
    return data.period


class FittedPlants(NamedTuple):
    """The plants of a run, one of them, and a note where their step is not the model's."""

    plants: PlantFactory
    plant: Plant
    notes: tuple[str, ...] = ()


def plants_for_period(plants: PlantFactory, plant: Plant, period: float) -> FittedPlants:
    """Return plants whose time step divides the control period.

    A step that the user gave is kept. That of the model is reduced to the largest divisor of the
    period below it: a plant with smaller steps is nearer to the motion that the model means, one
    with larger steps is not.

    Args:
        plants, plant: of the run.
        period: s.

    Raises:
        ProblemError: the user's step does not divide the period; the message has both remedies.
    """
    own = plant.timestep
    if plants.timestep is not None or divides(own, period):
        steps_per_tick(period, plant)
        return FittedPlants(plants, plant)
    fitted = replace(plants, timestep=period / math.ceil(period / own))
    smaller = fitted.make()
    steps_per_tick(period, smaller)
    note = (
        f"The plant steps by {1e3 * smaller.timestep:.4g} ms in place of the model's "
        f"{1e3 * own:.4g} ms, a divisor of the control period of {1e3 * period:.4g} ms. For the "
        "model's own step, give the controller a multiple of it as period."
    )
    return FittedPlants(fitted, smaller, (note,))
