"""What a run takes where nothing is given: the reference that stays, a fitting time step."""

import math
from dataclasses import replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control import ControlLaw, InverseDynamicsQP
from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import TimeSignal, steps_per_tick
from mbcasadi.validation.closed_loop.closed_loop import divides
from mbcasadi.validation.run.plant_factory import PlantFactory
from mbcasadi.validation.run.servo_plant import Controlled

Array = NDArray[np.float64]


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
