"""What a failure may be due to: the same run again, without one thing at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from mbcasadi.control import InverseDynamicsQP
from mbcasadi.errors import MbcasadiError
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import Recording, Runnable, Scenario, Tick
from mbcasadi.validation.closed_loop.compiled_law import Caller
from mbcasadi.validation.run.defaults import plants_for_period
from mbcasadi.validation.run.plant_factory import PlantFactory
from mbcasadi.validation.run.reference_rates import with_rates, wrong_rates
from mbcasadi.validation.run.servo_plant import Controlled

STRONGER = 10.0
"""Factor of the actuators' ranges in the run without saturation."""


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


class EvaluatedLaw(Runnable):
    """A law that CasADi evaluates: for one repetition, C is not worth its compilation.

    Attributes:
        controller: as data.
    """

    def __init__(self, law: InverseDynamicsQP) -> None:
        self.controller = law.controller

    @property
    def kind(self) -> str:
        """What runs, in words."""
        return "CasADi's Function of the law"

    def start(self, plant: Plant) -> Tick:  # noqa: ARG002  # the interface's
        """Return what calls the Function."""
        return Caller(self.controller.function)


def repetitions(trial: Trial) -> Iterator[Without]:
    """Yield the run without each thing that it has and that may spoil it."""
    yield from _true_rates(trial)
    yield from _nominal_plants(trial)
    scenario = trial.scenario
    if scenario.delay:
        ticks = f"{scenario.delay} tick{'s' * (scenario.delay > 1)}"
        yield _with(trial, f"the delay of {ticks}", scenario=replace(scenario, delay=0))
    if scenario.disturbance is not None:
        yield _with(trial, "the disturbance", scenario=replace(scenario, disturbance=None))
    yield from _without_friction_loss(trial)
    yield from _stronger_actuators(trial)
    yield from _rigid_constraints(trial)


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


def _stronger_actuators(trial: Trial) -> Iterator[Without]:
    """Yield the run with larger ranges of actuators, where some were at their limit.

    A law of ours keeps to limits of its own, and only an `InverseDynamicsQP` can be made again
    with larger ones. A controller of others is clipped by the plant alone.
    """
    control, recording = trial.law.controller, trial.recording
    if not np.any((recording.u <= control.u_min) | (recording.u >= control.u_max)):
        return

    def strong() -> Plant:
        plant = trial.plants.make()
        _strengthen(plant.model)
        return plant

    law: Runnable | None = trial.law if "limits" in control.untold else None
    if isinstance(trial.given, InverseDynamicsQP):
        ranges = trial.given.ranges
        try:
            stronger = replace(
                trial.given,
                ctrl_limits=STRONGER * ranges.ctrl,
                force_limits=STRONGER * ranges.force,
            )
            law = EvaluatedLaw(stronger)
        except MbcasadiError:  # other options hold only with the ranges as they are
            law = None
    if law is not None:
        cause = f"saturation (actuators {STRONGER:g} times as strong)"
        yield _with(trial, cause, law=law, make_plant=strong)


def _strengthen(model: mujoco.MjModel) -> None:
    """Make the ranges of controls and forces larger, in place."""
    for ranges in (
        model.actuator_ctrlrange,
        model.actuator_forcerange,
        model.jnt_actfrcrange,
        model.tendon_actfrcrange,
    ):
        ranges *= STRONGER


def _rigid_constraints(trial: Trial) -> Iterator[Without]:
    """Yield the run with equality constraints as rigid as MuJoCo can."""
    if trial.plants.rigid or not np.any(trial.recording.equality_force):
        return
    plants = replace(trial.plants, rigid=True)
    period = trial.law.controller.period
    fitted = plants_for_period(plants, plants.make(), period).plants
    yield _with(trial, "the softness of the equality constraints", make_plant=fitted.make)
