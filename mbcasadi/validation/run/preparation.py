"""What the runs of a trial have in common: the plant, its start, the controller, the reference.

Where nothing is given, the reference is the one that stays, and the time step one that fits.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control import ControlLaw, InverseDynamicsQP
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant, Source
from mbcasadi.validation.closed_loop import (
    Controllable,
    TimeSignal,
    as_runnable,
    require_pushes,
    steps_per_tick,
)
from mbcasadi.validation.closed_loop.closed_loop import divides
from mbcasadi.validation.run.servo_plant import Controlled, fitted_to_plant
from mbcasadi.validation.trial import Trial

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
    plants = PlantFactory(model, trial.rigid, options.timestep, dict(trial.perturb), options.seed)
    plant = plants.make()
    given = as_runnable(controller, plant, trial.period)
    plants, plant, notes = plants_for_period(plants, plant, period_of(given))
    require_pushes(trial.pushes, plant, trial.duration)
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
