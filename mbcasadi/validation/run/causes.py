"""What a failure may be due to: the same run again, without one thing at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import Recording, Runnable, Scenario
from mbcasadi.validation.metrics.control_metrics import saturation
from mbcasadi.validation.run.defaults import plants_for_period
from mbcasadi.validation.run.plant_factory import PlantFactory
from mbcasadi.validation.run.reference_rates import with_rates, wrong_rates
from mbcasadi.validation.run.servo_plant import Controlled
from mbcasadi.validation.run.without_limits import (
    STRONGER,
    joints_at_stops,
    stronger_law,
    stronger_plant,
)


@dataclass(frozen=True)
class Trial:
    """A run that failed.

    Attributes:
        law: what ran.
        given: what it was compiled from.
        plants, scenario, recording: of the run.
    """

    law: Runnable
    given: Controlled
    plants: PlantFactory
    scenario: Scenario
    recording: Recording


@dataclass(frozen=True)
class Without:
    """One repetition.

    Attributes:
        cause: what is left out: "the delay of 2 ticks".
        law: that runs.
        make_plant: gives its plant.
        scenario: of the repetition.
    """

    cause: str
    law: Runnable
    make_plant: Callable[[], Plant]
    scenario: Scenario


def repetitions(trial: Trial) -> Iterator[Without]:
    """Yield the run without each thing that it has and that may spoil it."""
    yield from _true_rates(trial)
    yield from _nominal_plants(trial)
    scenario = trial.scenario
    if scenario.delay:
        ticks = f"{scenario.delay} tick{'s' * (scenario.delay > 1)}"
        yield _with(trial, f"the delay of {ticks}", scenario=replace(scenario, delay=0))
    if scenario.disturbance is not None:
        yield _with(trial, _disturbance(scenario), scenario=replace(scenario, disturbance=None))
    yield from _without_friction_loss(trial)
    yield from _without_limits(trial)
    yield from _rigid_constraints(trial)


def _disturbance(scenario: Scenario) -> str:
    """Return the words for a disturbance."""
    bodies = ", ".join(dict.fromkeys(repr(push.body) for push in scenario.pushes))
    return (
        f"the push{'es' * (len(scenario.pushes) > 1)} on {bodies}" if bodies else "the disturbance"
    )


def _with(
    trial: Trial,
    cause: str,
    *,
    law: Runnable | None = None,
    make_plant: Callable[[], Plant] | None = None,
    scenario: Scenario | None = None,
) -> Without:
    """Return the run with some parts exchanged."""
    return Without(
        cause, law or trial.law, make_plant or trial.plants.make, scenario or trial.scenario
    )


def _true_rates(trial: Trial) -> Iterator[Without]:
    """Yield the run with a reference whose velocity is that of its motion."""
    reference, period = trial.scenario.reference, trial.law.controller.period
    wrong = wrong_rates(trial.law.controller, trial.recording)
    if wrong and callable(reference):
        names = ", ".join(f"'{each.pair.rate}'" for each in wrong)
        missing = "missing" if all(each.missing for each in wrong) else "wrong"
        true = replace(trial.scenario, reference=with_rates(reference, wrong, period))
        yield _with(trial, f"the {missing} velocity {names} of the reference", scenario=true)


def _nominal_plants(trial: Trial) -> Iterator[Without]:
    """Yield the run without each error of the plant's parameters."""
    errors = trial.plants.perturb
    for name, error in errors.items():
        rest = {key: value for key, value in errors.items() if key != name}
        plants = replace(trial.plants, perturb=rest)
        yield _with(trial, f"the {name} error of {100 * error:+.3g} %", make_plant=plants.make)


def _without_friction_loss(trial: Trial) -> Iterator[Without]:
    """Yield the run without dry friction in joints and tendons."""

    def smooth() -> Plant:
        plant = trial.plants.make()
        plant.model.dof_frictionloss[:] = 0.0
        plant.model.tendon_frictionloss[:] = 0.0
        return plant

    model = trial.plants.make().model
    if np.any(model.dof_frictionloss) or np.any(model.tendon_frictionloss):
        yield _with(trial, "the friction loss of the joints", make_plant=smooth)


def _without_limits(trial: Trial) -> Iterator[Without]:
    """Yield the run without saturation, and without the stops of joints too, where they act."""
    saturated = saturation(trial.law.controller, trial.recording.u).any()
    stopped = joints_at_stops(trial.plants.make().model, trial.recording.q)
    if not (saturated or stopped):
        return
    law = stronger_law(trial.given, trial.law) if saturated else None
    cause = f"saturation (ranges of the actuators {STRONGER:g} times as large)"
    if law is not None:
        yield _with(trial, cause, law=law, make_plant=lambda: stronger_plant(trial.plants))
    if stopped:
        stops = f"the stops of {', '.join(stopped)}"
        yield _with(
            trial,
            stops if law is None else f"{stops}, with {cause}",
            law=law,
            make_plant=lambda: stronger_plant(trial.plants, stops=False),
        )


def _rigid_constraints(trial: Trial) -> Iterator[Without]:
    """Yield the run with equality constraints as rigid as MuJoCo can."""
    if trial.plants.rigid or not np.any(trial.recording.equality_force):
        return
    plants = replace(trial.plants, rigid=True)
    period = trial.law.controller.period
    fitted = plants_for_period(plants, plants.make(), period).plants
    yield _with(trial, "the softness of the equality constraints", make_plant=fitted.make)
