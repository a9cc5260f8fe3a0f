"""What a failure may be due to: the same run again, without one thing at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control import InverseDynamicsQP
from mbcasadi.errors import MbcasadiError
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import FastLaw, Runnable, Scenario
from mbcasadi.validation.metrics.control_metrics import saturation
from mbcasadi.validation.run.conditions import FinishedRun
from mbcasadi.validation.run.preparation import Controlled, PlantFactory, plants_for_period
from mbcasadi.validation.run.reference_rates import with_rates, wrong_rates

Array = NDArray[np.float64]

STRONGER = 10.0
"""Factor of the actuators' ranges in the run without saturation."""


@dataclass(frozen=True)
class Experiment:
    """One repetition; what is None is that of the run.

    Attributes:
        cause: what is left out: "the delay of 2 ticks".
        law: that runs.
        make_plant: gives its plant.
        scenario: of the repetition.
    """

    cause: str
    law: Runnable | None = None
    make_plant: Callable[[], Plant] | None = None
    scenario: Scenario | None = None


def experiments(run: FinishedRun) -> Iterator[Experiment]:
    """Yield the run without each thing that it has and that may spoil it, the usual ones first."""
    scenario = run.scenario
    yield from _true_rates(run)
    if scenario.disturbance is not None:
        bodies = ", ".join(dict.fromkeys(repr(push.body) for push in scenario.pushes))
        pushes = f"the push{'es' * (len(scenario.pushes) > 1)} on {bodies}"
        undisturbed = replace(scenario, disturbance=None)
        yield Experiment(pushes if bodies else "the disturbance", scenario=undisturbed)
    if scenario.delay:
        ticks = f"{scenario.delay} tick{'s' * (scenario.delay > 1)}"
        yield Experiment(f"the delay of {ticks}", scenario=replace(scenario, delay=0))
    yield from _nominal_plants(run)
    yield from _without_friction_loss(run)
    yield from _without_limits(run)
    yield from _rigid_constraints(run)


def _true_rates(run: FinishedRun) -> Iterator[Experiment]:
    """Yield the run with a reference whose velocity is that of its motion."""
    reference, period = run.scenario.reference, run.law.controller.period
    wrong = wrong_rates(run.law.controller, run.recording)
    if wrong and callable(reference):
        names = ", ".join(f"'{each.pair.rate}'" for each in wrong)
        missing = "missing" if all(each.missing for each in wrong) else "wrong"
        true = replace(run.scenario, reference=with_rates(reference, wrong, period))
        yield Experiment(f"the {missing} velocity {names} of the reference", scenario=true)


def _nominal_plants(run: FinishedRun) -> Iterator[Experiment]:
    """Yield the run without each error of the plant's parameters."""
    errors = run.plants.perturb
    for name, error in errors.items():
        rest = {key: value for key, value in errors.items() if key != name}
        plants = replace(run.plants, perturb=rest)
        yield Experiment(f"the {name} error of {100 * error:+.3g} %", make_plant=plants.make)


def _without_friction_loss(run: FinishedRun) -> Iterator[Experiment]:
    """Yield the run without dry friction in joints and tendons."""

    def smooth() -> Plant:
        plant = run.plants.make()
        plant.model.dof_frictionloss[:] = 0.0
        plant.model.tendon_frictionloss[:] = 0.0
        return plant

    model = run.plants.make().model
    if np.any(model.dof_frictionloss) or np.any(model.tendon_frictionloss):
        yield Experiment("the friction loss of the joints", make_plant=smooth)


def _without_limits(run: FinishedRun) -> Iterator[Experiment]:
    """Yield the run without saturation, and without the stops of joints too, where they act."""
    saturated = saturation(run.law.controller, run.recording.u).any()
    stopped = joints_at_stops(run.plants.make().model, run.recording.q)
    if not (saturated or stopped):
        return
    law = stronger_law(run.given, run.law) if saturated else None
    cause = f"saturation (ranges of the actuators {STRONGER:g} times as large)"
    if law is not None:
        yield Experiment(cause, law=law, make_plant=lambda: stronger_plant(run.plants))
    if stopped:
        stops = f"the stops of {', '.join(stopped)}"
        yield Experiment(
            stops if law is None else f"{stops}, with {cause}",
            law=law,
            make_plant=lambda: stronger_plant(run.plants, stops=False),
        )


def _rigid_constraints(run: FinishedRun) -> Iterator[Experiment]:
    """Yield the run with equality constraints as rigid as MuJoCo can."""
    if run.plants.rigid or not np.any(run.recording.equality_force):
        return
    plants = replace(run.plants, rigid=True)
    period = run.law.controller.period
    fitted = plants_for_period(plants, plants.make(), period).plants
    yield Experiment("the softness of the equality constraints", make_plant=fitted.make)


def stronger_law(given: Controlled, law: Runnable) -> Runnable | None:
    """Return the law for far stronger actuators, or None.

    A law of ours keeps to limits of its own, and only an `InverseDynamicsQP` can be made again
    with larger ones. A controller of others is clipped by the plant alone.
    """
    if "limits" in law.controller.unreported:
        return law
    if not isinstance(given, InverseDynamicsQP):
        return None
    ranges = given.ranges
    try:
        wide = replace(given, ctrl_limits=wider(ranges.ctrl), force_limits=wider(ranges.force))
        # for one repetition, C is not worth its compilation
        data = wide.controller
        return FastLaw(data, data.function, "CasADi's Function of the law")
    except MbcasadiError:  # other options hold only with the ranges as they are
        return None


def stronger_plant(plants: PlantFactory, *, stops: bool = True) -> Plant:
    """Return the plant with far stronger actuators, with the stops of its joints or without."""
    plant = plants.make()
    model = plant.model
    for ranges in (
        model.actuator_ctrlrange,
        model.actuator_forcerange,
        model.jnt_actfrcrange,
        model.tendon_actfrcrange,
    ):
        ranges[:] = wider(ranges)
    if not stops:
        model.jnt_limited[:] = 0
    return plant


def wider(ranges: Array) -> Array:
    """Return ranges (n, 2) that are larger about their middles; infinite ends stay."""
    low, high = ranges.T
    width = high - low
    more = np.where(np.isfinite(width), (STRONGER - 1) / 2 * np.nan_to_num(width, posinf=0.0), 0.0)
    return np.stack([low - more, high + more], axis=1)


def joints_at_stops(model: mujoco.MjModel, q: Array) -> list[str]:
    """Return the names of the hinges and slides that come to a stop in a run, q (nt, nq)."""
    single = {int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)}
    names = []
    for j in range(model.njnt):
        if not model.jnt_limited[j] or int(model.jnt_type[j]) not in single:
            continue
        low, high = model.jnt_range[j]
        place = q[:, int(model.jnt_qposadr[j])]
        margin = model.jnt_margin[j]
        at_stop = (place < low + margin) | (place > high - margin)
        if at_stop.any() and not at_stop.all():  # as an open gripper is all the time
            names.append(model.joint(j).name or str(j))
    return names
