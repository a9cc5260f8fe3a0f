"""Why a run failed: how much of each failure goes away without one thing at a time."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from mbcasadi.errors import MbcasadiError
from mbcasadi.validation.closed_loop import Progress, Recording, run_loop
from mbcasadi.validation.metrics import (
    Criteria,
    Metric,
    TrackingStatistics,
    Verdict,
    base_name,
    run_statistics,
)
from mbcasadi.validation.run.causes import FailedRun, Without, repetitions
from mbcasadi.validation.run.gain_advice import gain_advice

EXPLAINED = ("tracking", "closure", "cone", "contact", "status", "torque", "limits", "finished")
"""Groups of metrics that depend on the motion; times of the C do not."""

START = 0.25
"""Share of the run after which its start is over."""

SETTLED = ("tracking.", "prediction.", "contact.force")
"""Metrics that `Criteria.settle` applies to."""

START_CAUSE = "the start: errors and jumps in the first quarter of the run"


@dataclass(frozen=True)
class Cause:
    """One thing that was left out.

    Attributes:
        name: what it is, with its article.
        value: of the failing metric without it; NaN where it was not measured.
        share: of the failure that goes away without it: 1 for all, negative where it gets worse.
        passed: without it the criterion holds.
    """

    name: str
    value: float
    share: float
    passed: bool


@dataclass(frozen=True)
class Failure:
    """A criterion that failed, and what it is due to.

    Attributes:
        verdict: of the criterion.
        component: of the tasks, that has the value; "" for other metrics.
        causes: the largest share first.
    """

    verdict: Verdict
    component: str
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class Diagnosis:
    """Why a run failed.

    Attributes:
        failures: each criterion that failed.
        advice: on gains, in sentences.
    """

    failures: tuple[Failure, ...]
    advice: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Return failures and advice as plain data."""
        return asdict(self)


def diagnose(
    run: FailedRun,
    criteria: Criteria,
    verdicts: Sequence[Verdict],
    tracking: Sequence[TrackingStatistics],
    progress: Progress,
) -> Diagnosis:
    """Return why a run failed, by repetitions of it.

    Args:
        run: that failed.
        criteria, verdicts: of the run.
        tracking: the components of its tasks.
        progress: called with what is being done.
    """
    failed = [v for v in verdicts if v.passed is False]
    explained = [
        v for v in failed if v.metric.split(".")[0] in EXPLAINED and not math.isnan(v.value)
    ]
    again: dict[str, dict[str, float]] = {}
    for each in repetitions(run) if explained else ():
        progress(f"repeating the run without {each.cause}", 0.87)
        again[each.cause] = _repeated(each, run, criteria)
    if explained:
        again[START_CAUSE] = _later(run, criteria)
    failures = tuple(
        Failure(v, _component(v, tracking), _causes(v, run, again if v in explained else {}))
        for v in failed
    )
    return Diagnosis(failures, tuple(_advice(run, failures)))


def _advice(run: FailedRun, failures: Sequence[Failure]) -> Iterator[str]:
    """Yield advice on the gains of the tasks that were not tracked, of all in a run that ended."""
    tracked = [f for f in failures if f.verdict.metric.startswith(("tracking", "finished"))]
    if tracked:
        components = [failure.component for failure in tracked]
        of_tasks = None if "" in components else {c.split(".")[0] for c in components}
        yield from gain_advice(run.given, run.law.controller, run.scenario.delay, of_tasks)


def _repeated(each: Without, run: FailedRun, criteria: Criteria) -> dict[str, float]:
    """Return the metrics of a repetition, and as `finished` the share of time that it ran."""
    try:
        plant = each.make_plant()
        recording = run_loop(each.law, plant, each.scenario)
        metrics = run_statistics(each.law.controller, recording, plant, criteria).metrics
    except MbcasadiError:  # this plant cannot be run: nothing is known of this cause
        return {}
    return _values(metrics, recording, run)


def _later(run: FailedRun, criteria: Criteria) -> dict[str, float]:
    """Return the metrics of the run itself after its start.

    Those that know a settling time get it, as errors are related to those at the start of a run.
    """
    plant, recording = run.plants.make(), run.recording
    settled = replace(criteria, settle=max(criteria.settle, START * run.scenario.duration))
    parts = ((recording.later(int(START * recording.ticks)), criteria), (recording, settled))
    later, of_run = (
        {m.name: m for m in run_statistics(run.law.controller, part, plant, limits).metrics}
        for part, limits in parts
    )
    chosen = later | {k: m for k, m in of_run.items() if k.startswith(SETTLED)}
    return _values(list(chosen.values()), recording, run)


def _values(metrics: Sequence[Metric], recording: Recording, run: FailedRun) -> dict[str, float]:
    values = {metric.name: metric.value for metric in metrics}
    return values | {"finished": _share_run(recording, run)}


def _share_run(recording: Recording, run: FailedRun) -> float:
    """Return the share of the duration that a run reached."""
    ticks = run.scenario.duration / run.law.controller.period
    return 1.0 if not recording.events else recording.ticks / max(1.0, ticks)


def _causes(
    verdict: Verdict, run: FailedRun, again: dict[str, dict[str, float]]
) -> tuple[Cause, ...]:
    """Return the causes of one failure, the largest first."""
    whole = _excess(verdict, _own_value(verdict, run))
    causes = []
    for name, values in again.items():
        value = values.get(verdict.metric, math.nan)
        left = _excess(verdict, value)
        share = (whole - left) / whole if whole > 0 else math.nan
        passed = left <= _excess(verdict, verdict.limit) and not math.isnan(left)
        causes.append(Cause(name, value, share, passed))
    return tuple(sorted(causes, key=lambda c: -c.share if math.isfinite(c.share) else math.inf))


def _own_value(verdict: Verdict, run: FailedRun) -> float:
    ended = verdict.metric == "finished"
    return _share_run(run.recording, run) if ended else verdict.value


def _excess(verdict: Verdict, value: float) -> float:
    """Return what goes away without a cause: the value, or how far it is below its bound."""
    return verdict.limit - value if verdict.at_least else value


def _component(verdict: Verdict, tracking: Sequence[TrackingStatistics]) -> str:
    """Return the component of the tasks that a metric of tracking is of."""
    values = {
        "tracking.rms": lambda row: row.rms,
        "tracking.max": lambda row: row.peak,
        "tracking.rms_share": lambda row: row.share(row.rms),
        "tracking.max_share": lambda row: row.share(row.peak),
    }
    of = values.get(base_name(verdict.metric))
    return "" if of is None else next((r.name for r in tracking if of(r) == verdict.value), "")
