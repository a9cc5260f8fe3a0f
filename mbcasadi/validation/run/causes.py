"""What a failure may be due to: the same run again, without one thing at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import Recording, Runnable, Scenario
from mbcasadi.validation.metrics.control_metrics import saturation
from mbcasadi.validation.run.preparation import PlantFactory, plants_for_period
from mbcasadi.validation.run.reference_rates import with_rates, wrong_rates
from mbcasadi.validation.run.servo_plant import Controlled
from mbcasadi.validation.run.without_limits import (
    STRONGER,
    joints_at_stops,
    stronger_law,
    stronger_plant,
)


@dataclass(frozen=True)
class FailedRun:
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


def repetitions(run: FailedRun) -> Iterator[Without]:
    """Yield the run without each thing that it has and that may spoil it."""
    yield from _true_rates(run)
    yield from _nominal_plants(run)
    scenario = run.scenario
    if scenario.delay:
        ticks = f"{scenario.delay} tick{'s' * (scenario.delay > 1)}"
        yield _with(run, f"the delay of {ticks}", scenario=replace(scenario, delay=0))
    if scenario.disturbance is not None:
        yield _with(run, _disturbance(scenario), scenario=replace(scenario, disturbance=None))
    yield from _without_friction_loss(run)
    yield from _without_limits(run)
    yield from _rigid_constraints(run)


def _disturbance(scenario: Scenario) -> str:
    """Return the words for a disturbance."""
    bodies = ", ".join(dict.fromkeys(repr(push.body) for push in scenario.pushes))
    return (
        f"the push{'es' * (len(scenario.pushes) > 1)} on {bodies}" if bodies else "the disturbance"
    )


def _with(
    run: FailedRun,
    cause: str,
    *,
    law: Runnable | None = None,
    make_plant: Callable[[], Plant] | None = None,
    scenario: Scenario | None = None,
) -> Without:
    """Return the run with some parts exchanged."""
    return Without(cause, law or run.law, make_plant or run.plants.make, scenario or run.scenario)


def _true_rates(run: FailedRun) -> Iterator[Without]:
    """Yield the run with a reference whose velocity is that of its motion."""
    reference, period = run.scenario.reference, run.law.controller.period
    wrong = wrong_rates(run.law.controller, run.recording)
    if wrong and callable(reference):
        names = ", ".join(f"'{each.pair.rate}'" for each in wrong)
        missing = "missing" if all(each.missing for each in wrong) else "wrong"
        true = replace(run.scenario, reference=with_rates(reference, wrong, period))
        yield _with(run, f"the {missing} velocity {names} of the reference", scenario=true)


def _nominal_plants(run: FailedRun) -> Iterator[Without]:
    """Yield the run without each error of the plant's parameters."""
    errors = run.plants.perturb
    for name, error in errors.items():
        rest = {key: value for key, value in errors.items() if key != name}
        plants = replace(run.plants, perturb=rest)
        yield _with(run, f"the {name} error of {100 * error:+.3g} %", make_plant=plants.make)


def _without_friction_loss(run: FailedRun) -> Iterator[Without]:
    """Yield the run without dry friction in joints and tendons."""

    def smooth() -> Plant:
        plant = run.plants.make()
        plant.model.dof_frictionloss[:] = 0.0
        plant.model.tendon_frictionloss[:] = 0.0
        return plant

    model = run.plants.make().model
    if np.any(model.dof_frictionloss) or np.any(model.tendon_frictionloss):
        yield _with(run, "the friction loss of the joints", make_plant=smooth)


def _without_limits(run: FailedRun) -> Iterator[Without]:
    """Yield the run without saturation, and without the stops of joints too, where they act."""
    saturated = saturation(run.law.controller, run.recording.u).any()
    stopped = joints_at_stops(run.plants.make().model, run.recording.q)
    if not (saturated or stopped):
        return
    law = stronger_law(run.given, run.law) if saturated else None
    cause = f"saturation (ranges of the actuators {STRONGER:g} times as large)"
    if law is not None:
        yield _with(run, cause, law=law, make_plant=lambda: stronger_plant(run.plants))
    if stopped:
        stops = f"the stops of {', '.join(stopped)}"
        yield _with(
            run,
            stops if law is None else f"{stops}, with {cause}",
            law=law,
            make_plant=lambda: stronger_plant(run.plants, stops=False),
        )


def _rigid_constraints(run: FailedRun) -> Iterator[Without]:
    """Yield the run with equality constraints as rigid as MuJoCo can."""
    if run.plants.rigid or not np.any(run.recording.equality_force):
        return
    plants = replace(run.plants, rigid=True)
    period = run.law.controller.period
    fitted = plants_for_period(plants, plants.make(), period).plants
    yield _with(run, "the softness of the equality constraints", make_plant=fitted.make)
