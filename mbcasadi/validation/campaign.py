"""Many runs of one controller: seeds, parameter errors, delays, starting points."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError, SimulationError
from mbcasadi.plant import Plant, Source
from mbcasadi.validation.closed_loop.closed_loop import Progress, Scenario, Signal, Teller, run_loop
from mbcasadi.validation.closed_loop.compiled_law import CompiledLaw, HasController, compiled
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics import metrics as measures
from mbcasadi.validation.metrics.contact_metrics import contact_metrics
from mbcasadi.validation.metrics.criteria import judge, scopes
from mbcasadi.validation.metrics.margins import margin_metrics, margins
from mbcasadi.validation.metrics.metrics import Metric
from mbcasadi.validation.metrics.predictions import prediction_metrics, predictions
from mbcasadi.validation.metrics.recorded_signals import require_reportable
from mbcasadi.validation.metrics.status_metrics import status_metrics
from mbcasadi.validation.report.campaign_report import Campaign, Case, Outcome


def campaign(
    controller: Controller | HasController,
    model: Source,
    duration: float,
    plan: Sequence[Case],
    *,
    reference: Signal = None,
    mask: Signal = None,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    keyframe: str | None = None,
    rigid: bool = False,
    timestep: float | None = None,
    disturbance: Signal = None,
    settle: float = 0.0,
    criteria: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> Campaign:
    """Run one controller's generated C in many plants; the C is generated once.

    The arguments are those of `validate`; each case adds its own errors. A plant that diverges,
    or a start that cannot be closed, is a failed case, not an exception.
    """
    if not plan:
        raise ProblemError("a campaign needs at least one case")
    tell = Teller(progress)
    tell("generating and compiling C", 0.0)
    options: dict[str, Any] = {"rigid": rigid, "timestep": timestep}
    with compiled(controller, tell.note) as law:
        require_reportable(law.controller)
        outcomes = []
        for k, case in enumerate(plan):
            tell(f"run {k + 1} of {len(plan)}", k / len(plan))
            plant = Plant(model, perturb=case.perturb, seed=case.seed, **options)
            start = plant.keyframe(keyframe) if keyframe is not None else q0
            start = _displaced(plant, start, case)
            scenario = Scenario(duration, reference, mask, start, v0, case.delay, disturbance)
            outcomes.append(_outcome(law, plant, scenario, case, settle, criteria))
    return Campaign(tuple(outcomes))


def _displaced(plant: Plant, q0: ArrayLike | None, case: Case) -> ArrayLike | None:
    """Return the start, moved by a random tangent step of the case's size."""
    if not case.start_error:
        return q0
    step = np.random.default_rng(case.seed).uniform(-1.0, 1.0, plant.nv) * case.start_error
    return plant.moved(q0, step)


def _outcome(
    law: CompiledLaw,
    plant: Plant,
    scenario: Scenario,
    case: Case,
    settle: float,
    criteria: Mapping[str, float] | None,
) -> Outcome:
    try:
        recording = run_loop(law, plant, scenario)
    except SimulationError as error:
        return Outcome(case, (), judge((), criteria or {}, finished=False), (str(error),))
    found = tuple(_metrics(law, plant, recording, settle, scopes(criteria)))
    finished = not recording.events
    return Outcome(case, found, judge(found, criteria, finished=finished), recording.events)


def _metrics(
    law: CompiledLaw, plant: Plant, recording: Recording, settle: float, wanted: Sequence[str]
) -> Iterator[Metric]:
    tracked = measures.tracked(law.controller, recording, settle)
    yield from measures.tracking_metrics(tracked, wanted)
    yield from measures.closure_metrics(recording, None)
    yield from measures.torque_metrics(law.controller, recording)
    yield from margin_metrics(margins(law.controller, recording))
    yield from contact_metrics(law.controller, recording)
    yield from status_metrics(law.controller, recording)
    yield from prediction_metrics(predictions(law.controller, recording, plant, settle))
