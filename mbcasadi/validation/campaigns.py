"""Many runs of one controller: seeds, parameter errors, delays, starting points."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError, SimulationError
from mbcasadi.plant import Plant, Source
from mbcasadi.validation import metrics as measures
from mbcasadi.validation.contact_metrics import contact_metrics
from mbcasadi.validation.criteria import LOWER_BOUNDED, Verdict, judge, scopes
from mbcasadi.validation.law import CompiledLaw, compiled
from mbcasadi.validation.loop import Progress, Scenario, Signal, Teller, run_loop
from mbcasadi.validation.margins import margin_metrics, margins
from mbcasadi.validation.metrics import Metric
from mbcasadi.validation.predictions import prediction_metrics, predictions
from mbcasadi.validation.recorded import require_reportable
from mbcasadi.validation.recording import Recording
from mbcasadi.validation.report import plain, versions
from mbcasadi.validation.statuses import status_metrics

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One run of a campaign.

    Attributes:
        seed: of the parameter errors and of the starting point.
        perturb: relative parameter errors; each body draws its own within them.
        delay: ticks.
        start_error: rad or m, largest error of each coordinate at the start.
    """

    seed: int
    perturb: Mapping[str, float]
    delay: int
    start_error: float


@dataclass(frozen=True)
class Outcome:
    """What became of one case."""

    case: Case
    metrics: tuple[Metric, ...]
    verdicts: tuple[Verdict, ...]
    events: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every criterion held."""
        return all(verdict.passed for verdict in self.verdicts)

    def metric(self, name: str) -> float:
        """Return the value of a metric, NaN where the run does not have it."""
        return next((m.value for m in self.metrics if m.name == name), float("nan"))


@dataclass(frozen=True)
class Campaign:
    """All outcomes, in the order of the cases."""

    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        """Whether every criterion of every case held."""
        return all(outcome.passed for outcome in self.outcomes)

    def summary(self) -> list[dict[str, Any]]:
        """Return one row for each metric: median, worst case and which one it was."""
        names = dict.fromkeys(m.name for o in self.outcomes for m in o.metrics)
        judged = {v.metric: v for o in self.outcomes for v in o.verdicts}
        rows = []
        for name in names:
            values = np.array([outcome.metric(name) for outcome in self.outcomes])
            lower = name in LOWER_BOUNDED
            worst = int(np.nanargmin(values) if lower else np.nanargmax(values))
            failed = sum(
                not v.passed for o in self.outcomes for v in o.verdicts if v.metric == name
            )
            rows.append(
                {
                    "metric": name,
                    "median": float(np.nanmedian(values)),
                    "worst": float(values[worst]),
                    "worst_case": worst,
                    "limit": judged[name].limit if name in judged else None,
                    "failed": failed if name in judged else None,
                }
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data that JSON can hold."""
        found: dict[str, Any] = plain(
            {
                "passed": self.passed,
                "versions": versions(),
                "summary": self.summary(),
                "cases": [
                    {
                        "seed": o.case.seed,
                        "perturb": dict(o.case.perturb),
                        "delay": o.case.delay,
                        "start_error": o.case.start_error,
                        "passed": o.passed,
                        "metrics": {m.name: m.value for m in o.metrics},
                        "failed": [v.metric for v in o.verdicts if not v.passed],
                        "events": list(o.events),
                    }
                    for o in self.outcomes
                ],
            }
        )
        return found

    def to_json(self) -> str:
        """Return the campaign as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def table(self) -> Any:
        """Return the summary as a `rich` table.

        Raises:
            MissingExtraError: rich is not installed.
        """
        from mbcasadi.validation.table import campaign_table

        return campaign_table(self)


def cases(
    seeds: Sequence[int],
    perturbs: Sequence[Mapping[str, float]] = ({},),
    delays: Sequence[int] = (0,),
    start_errors: Sequence[float] = (0.0,),
) -> list[Case]:
    """Return every combination of the given seeds, errors and delays."""
    return [
        Case(seed, dict(perturb), delay, start)
        for perturb in perturbs
        for delay in delays
        for start in start_errors
        for seed in seeds
    ]


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
