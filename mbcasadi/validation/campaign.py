"""Many runs of one controller: seeds, parameter errors, delays, initial states."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError, SimulationError
from mbcasadi.plant import Plant, Source
from mbcasadi.validation.closed_loop import (
    Controllable,
    Progress,
    ProgressReporter,
    Runnable,
    Scenario,
    ScenarioOptions,
    TimeSignal,
    as_runnable,
    compile_controller,
    run_loop,
)
from mbcasadi.validation.metrics import Criteria, judge, require_reportable, run_statistics
from mbcasadi.validation.report import Campaign, Case, Outcome
from mbcasadi.validation.run import fitted_to_plant, initial_configuration


@checked
def campaign(
    controller: Controllable,
    model: Source,
    duration: float,
    cases: Sequence[Case],
    *,
    reference: TimeSignal = None,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    rigid: bool = False,
    disturbance: TimeSignal = None,
    scenario: ScenarioOptions | None = None,
    criteria: Criteria | None = None,
    progress: Progress | None = None,
) -> Campaign:
    """Run one controller's generated C in many plants; the C is generated once.

    A plant that diverges, or a start that cannot be closed, is a failed case, not an exception.

    Args:
        controller: as in `validate`.
        model: MJCF or URDF file, XML text, `MjSpec` or `MjModel` of the plants.
        duration: s, of each run.
        cases: seed, parameter errors, delay and start error of each run; see `cases`.
        reference: (nref,), or a function of time that returns it.
        q0, v0: initial state before the start error of a case; `qpos0` and zero by default.
        rigid: use the rigid recipe for the plants' equality constraints.
        disturbance: (nv,) generalised force on the plants, or a function of time.
        scenario: mask, tuning, switched constraints, outer law, key frame, time step; no seed, as
            each case has its own.
        criteria: limits on metrics, and the settling time; `DEFAULTS` where None.
        progress: called with what is being done and a share from 0 to 1.

    Raises:
        ProblemError: no case, a seed in `scenario`, or a controller that does not fit the model.
        ModelError: the model cannot be read.
        ExportError: the C cannot be generated or compiled.
    """
    options, criteria = scenario or ScenarioOptions(), criteria or Criteria()
    if not cases:
        raise ProblemError("a campaign needs at least one case")
    if options.seed is not None:
        raise ProblemError("each case of a campaign has a seed; leave seed out of the scenario")
    report = ProgressReporter(progress)
    report("generating and compiling C", 0.0)
    delays = {case.delay for case in cases}
    nominal = Plant(model, rigid=rigid, timestep=options.timestep)
    controller = as_runnable(controller, nominal)
    controller = fitted_to_plant(controller, nominal, delays.pop() if len(delays) == 1 else 0)
    with compile_controller(controller, report.note) as law:
        require_reportable(law.controller)
        outcomes = []
        for k, case in enumerate(cases):
            report(f"run {k + 1} of {len(cases)}", k / len(cases))
            plant = Plant(
                model, rigid=rigid, timestep=options.timestep, perturb=case.perturb, seed=case.seed
            )
            start = initial_configuration(plant, q0, options.keyframe)
            start = _displace(plant, start, case)
            loop = Scenario(duration, reference, start, v0, case.delay, disturbance, options)
            outcomes.append(_outcome(law, plant, loop, case, criteria))
    return Campaign(tuple(outcomes))


def _displace(plant: Plant, q0: ArrayLike | None, case: Case) -> ArrayLike | None:
    """Return q0, displaced by a random tangent step of the case's size."""
    if not case.start_error:
        return q0
    step = np.random.default_rng(case.seed).uniform(-1.0, 1.0, plant.nv) * case.start_error
    return plant.integrate(q0, step)


def _outcome(
    law: Runnable, plant: Plant, scenario: Scenario, case: Case, criteria: Criteria
) -> Outcome:
    try:
        recording = run_loop(law, plant, scenario)
    except SimulationError as error:
        return Outcome(case, (), judge((), criteria, finished=False), (str(error),))
    metrics = run_statistics(
        law.controller, recording, plant, criteria, delay=scenario.delay
    ).metrics
    verdicts = judge(metrics, criteria, finished=not recording.events)
    return Outcome(case, metrics, verdicts, recording.events)
