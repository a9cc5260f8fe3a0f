"""Why a run failed: how much of each failure goes away without one thing at a time; gains."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from mbcasadi.control import InverseDynamicsQP, propose_gains
from mbcasadi.control.inverse_dynamics.proposed_gains import task_loop
from mbcasadi.control.margins.loop_margins import loop_margins
from mbcasadi.errors import MbcasadiError
from mbcasadi.progress import Progress
from mbcasadi.validation.closed_loop import Recording, run_loop
from mbcasadi.validation.metrics import (
    Criteria,
    Metric,
    TrackingStatistics,
    Verdict,
    base_name,
    run_statistics,
)
from mbcasadi.validation.metrics.text import limit_text, metric_text, tick_count, value_text
from mbcasadi.validation.run.conditions import FinishedRun
from mbcasadi.validation.run.experiments import Experiment, experiments

EXPLAINED = ("tracking", "closure", "cone", "contact", "status", "torque", "limits", "finished")
"""Groups of metrics that depend on the motion; times of the C do not."""

START = 0.25
"""Share of the run after which its start is over."""

SETTLED = ("tracking.", "prediction.", "contact.force")
"""Metrics that `Criteria.settle` applies to."""

SMALL = 0.05
"""Share of a failure below which a cause is not one."""

HIGHER = 1.5
"""Ratio of the stiffness that period and delay permit to a task's, from which it is reported."""

USUAL_MARGIN = 2.0
"""Factor that the inertia may be wrong by, below which gains are called too high."""

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

    @property
    def sentences(self) -> list[str]:
        """A sentence for each failure, for each of its causes, and for the gains."""
        lines = [line for failure in self.failures for line in _failure_lines(failure)]
        return [*lines, *self.advice]

    def to_dict(self) -> dict[str, object]:
        """Return failures and advice as plain data."""
        return asdict(self)


def diagnose(
    run: FinishedRun,
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
    with run.outer_record_kept():
        for each in experiments(run) if explained else ():
            progress(f"repeating the run without {each.cause}", 0.87)
            again[each.cause] = _repeated(each, run, criteria)
    if explained:
        again[START_CAUSE] = _later(run, criteria)
    failures = tuple(
        Failure(v, _component(v, tracking), _causes(v, run, again if v in explained else {}))
        for v in failed
    )
    return Diagnosis(failures, tuple(_advice(run, failures)))


def _advice(run: FinishedRun, failures: Sequence[Failure]) -> Iterator[str]:
    """Yield a sentence on each task whose gains are too high, or could be higher.

    The margins of a task's loop follow from period and delay. Low gains are said of tasks that were
    not tracked, of all in a run that ended early; only an `InverseDynamicsQP` has gains of tasks.
    """
    tracked = [f for f in failures if f.verdict.metric.startswith(("tracking", "finished"))]
    given, delay, period = run.given, run.scenario.delay, run.law.controller.period
    if not tracked or not isinstance(given, InverseDynamicsQP):
        return
    components = [failure.component for failure in tracked]
    of_tasks = None if "" in components else {c.split(".")[0] for c in components}
    best = propose_gains(period, delay=delay)
    where = f"a period of {1e3 * period:.3g} ms"
    where += f" and a delay of {tick_count(delay)}" if delay else ""
    bounds = f"up to {_gains(best.kp, best.kd)} where the motors have no lag"
    for task, gains in zip(given.tasks, given.gains, strict=True):
        if not np.any(gains.kp > 0):
            continue
        row = int(np.argmax(gains.kp))
        kp, kd = float(gains.kp[row]), float(gains.kd[row])
        own = f"task '{task.name}' ({_gains(kp, kd)})"
        bandwidth = float(np.sqrt(kp))
        loop = task_loop(period, delay, 0.0, (bandwidth, kd / (2 * bandwidth)), None)
        margin = loop_margins(loop)
        if margin is None:
            yield f"lower the gains of {own}: with {where} its loop is unstable; use {bounds}"
        elif margin.together.strongest < USUAL_MARGIN:
            yield (
                f"lower the gains of {own}: with {where} its loop tolerates only "
                f"{margin.together.strongest:.2g} times these gains; a usual margin leaves {bounds}"
            )
        elif best.kp > HIGHER * kp and (of_tasks is None or task.name in of_tasks):
            yield (
                f"the gains of {own} may be raised: with {where} {bounds}; a steady error is "
                "inversely proportional to kp"
            )


def _gains(kp: float, kd: float) -> str:
    return f"kp = {_number(kp)} 1/s², kd = {_number(kd)} 1/s"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _repeated(each: Experiment, run: FinishedRun, criteria: Criteria) -> dict[str, float]:
    """Return the metrics of a repetition, and as `finished` the share of time that it ran."""
    try:
        law, plant = each.law or run.law, (each.make_plant or run.plants.make)()
        recording = run_loop(law, plant, each.scenario or run.scenario)
        metrics = run_statistics(law.controller, recording, plant, criteria).metrics
    except MbcasadiError:  # this plant cannot be run: nothing is known of this cause
        return {}
    return _values(metrics, recording, run)


def _later(run: FinishedRun, criteria: Criteria) -> dict[str, float]:
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


def _values(metrics: Sequence[Metric], recording: Recording, run: FinishedRun) -> dict[str, float]:
    values = {metric.name: metric.value for metric in metrics}
    return values | {"finished": _share_run(recording, run)}


def _share_run(recording: Recording, run: FinishedRun) -> float:
    """Return the share of the duration that a run reached."""
    ticks = run.scenario.duration / run.law.controller.period
    return 1.0 if not recording.events else recording.ticks / max(1.0, ticks)


def _causes(
    verdict: Verdict, run: FinishedRun, again: dict[str, dict[str, float]]
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


def _own_value(verdict: Verdict, run: FinishedRun) -> float:
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


def _failure_lines(failure: Failure) -> Iterator[str]:
    verdict = failure.verdict
    name = metric_text(verdict.metric)
    where = f" ({failure.component})" if failure.component else ""
    if verdict.metric == "finished":
        yield "the run ended early"
    else:
        value = value_text(verdict.metric, verdict.value)
        yield f"{name}{where} is {value}, required {limit_text(verdict)}"
    causes = [cause for cause in failure.causes if cause.share >= SMALL]
    for cause in causes:
        yield f"  due to {cause.name}: without it {_value(failure, cause)}"
    others = [cause.name for cause in failure.causes if cause.share < SMALL]
    if others:
        yield f"  not due to {', '.join(others)}"
    unknown = [cause.name for cause in failure.causes if math.isnan(cause.share)]
    if unknown:
        yield f"  could not be run or measured without {', '.join(unknown)}"
    if failure.causes and not causes:
        yield (
            "  nothing that was left out explains it alone: see the gains, whether the reference "
            "can be reached, and what the model lacks"
        )


def _value(failure: Failure, cause: Cause) -> str:
    """Return what is left without a cause, in words."""
    metric, ok = failure.verdict.metric, ", which passes" if cause.passed else ""
    if metric == "finished":
        reached = "reaches its end" if cause.passed else f"gets to {100 * cause.value:.3g} %"
        return f"the run {reached}"
    left = f"{value_text(metric, cause.value)}{ok}"
    return f"{left} ({100 * min(1.0, cause.share):.0f} % of it goes away)"
