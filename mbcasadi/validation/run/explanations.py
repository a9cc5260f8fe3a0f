"""Why a run failed: how much of each failure goes away without one thing at a time; gains.

Of a robot that falls only the time before it is explained: what fails later follows from the fall.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mbcasadi.control import InverseDynamicsQP, propose_gains
from mbcasadi.control.inverse_dynamics.proposed_gains import task_loop
from mbcasadi.control.margins.loop_margins import loop_margins
from mbcasadi.progress import Progress
from mbcasadi.validation.metrics import Criteria, TrackingStatistics, Verdict, base_name
from mbcasadi.validation.metrics.text import limit_text, metric_text, tick_count, value_text
from mbcasadi.validation.run.conditions import FinishedRun
from mbcasadi.validation.run.repetitions import (
    MOST_RUNS,
    Fall,
    Repetitions,
    fall_of,
    own_values,
    repeat,
    values_after_start,
)

EXPLAINED = (
    *("tracking", "closure", "cone", "contact", "status", "torque", "limits", "plant"),
    "finished",
)
"""Groups of metrics that depend on the motion; times of the C do not."""

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
        causes: the largest share first; none where it holds up to a fall.
        before: value of the metric up to a fall; NaN where no robot falls.
    """

    verdict: Verdict
    component: str
    causes: tuple[Cause, ...]
    before: float = math.nan


@dataclass(frozen=True)
class FallCauses:
    """That a robot falls, and what it is due to.

    Attributes:
        time: s, at which it has fallen.
        end: s, at which repetitions end.
        causes: with the times at which it has fallen without them, s, or `end`.
    """

    time: float
    end: float
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class Diagnosis:
    """Why a run failed.

    Attributes:
        failures: each criterion that failed.
        advice: on gains, in sentences.
        fall: of a robot that stood; None where none falls.
        not_repeated: causes that were not looked at, as the others took long.
    """

    failures: tuple[Failure, ...]
    advice: tuple[str, ...]
    fall: FallCauses | None = None
    not_repeated: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """A sentence for each failure, for each of its causes, and for the gains."""
        lines = [] if self.fall is None else list(_fall_lines(self.fall))
        lines += [line for failure in self.failures for line in _failure_lines(failure, self.fall)]
        if self.not_repeated:
            lines.append(
                f"not repeated without {', '.join(self.not_repeated)}: the repetitions before have "
                f"as many ticks as {MOST_RUNS} runs"
            )
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
    fall = fall_of(run, criteria)
    own = own_values(run, criteria, verdicts, fall)
    explained = {
        v.metric
        for v in failed
        if v.metric.split(".")[0] in EXPLAINED and _fails(v, own.get(v.metric, math.nan))
    }
    again = Repetitions()
    with run.outer_record_kept():
        if explained or fall is not None:
            again = repeat(run, criteria, fall, progress)
    values = dict(again.values)
    if explained:
        values[START_CAUSE] = values_after_start(run, criteria, fall)
    failures = tuple(
        Failure(
            v,
            _component(v, tracking),
            _causes(v, own, values) if v.metric in explained else (),
            math.nan if fall is None else own.get(v.metric, math.nan),
        )
        for v in failed
    )
    return Diagnosis(
        failures,
        tuple(_advice(run, failures)),
        None if fall is None else _fall_causes(fall, again, run.law.controller.period),
        again.left_out,
    )


def _fails(verdict: Verdict, value: float) -> bool:
    """Return whether a value misses a criterion; NaN was not measured, and is not explained."""
    return value < verdict.limit if verdict.at_least else value > verdict.limit


def _fall_causes(fall: Fall, again: Repetitions, period: float) -> FallCauses:
    """Return by how much longer a robot stands without each thing."""
    causes = []
    for name in again.values:
        stood = again.stood.get(name, math.nan)
        share = (stood - fall.tick) / max(1, fall.end - fall.tick)
        causes.append(Cause(name, stood * period, share, stood >= fall.end))
    return FallCauses(fall.tick * period, fall.end * period, _ranked(causes))


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


def _causes(
    verdict: Verdict, own: dict[str, float], again: dict[str, dict[str, float]]
) -> tuple[Cause, ...]:
    """Return the causes of one failure, the largest first."""
    whole = _excess(verdict, own[verdict.metric])
    causes = []
    for name, values in again.items():
        value = values.get(verdict.metric, math.nan)
        left = _excess(verdict, value)
        share = (whole - left) / whole if whole > 0 else math.nan
        passed = left <= _excess(verdict, verdict.limit) and not math.isnan(left)
        causes.append(Cause(name, value, share, passed))
    return _ranked(causes)


def _ranked(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    return tuple(sorted(causes, key=lambda c: -c.share if math.isfinite(c.share) else math.inf))


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


def _fall_lines(fall: FallCauses) -> Iterator[str]:
    yield f"the robot falls: at {fall.time:.3g} s it no longer stands"
    for cause in fall.causes:
        if cause.share >= SMALL:
            longer = f"at {cause.value:.3g} s, when the repetition ends" if cause.passed else ""
            still = f"it still stands {longer}" if longer else f"it falls at {cause.value:.3g} s"
            yield f"  due to {cause.name}: without it {still}"
    yield from _other_lines(fall.causes)


def _failure_lines(failure: Failure, fall: FallCauses | None) -> Iterator[str]:
    verdict = failure.verdict
    name = metric_text(verdict.metric)
    where = f" ({failure.component})" if failure.component else ""
    before = ""
    if fall is not None and failure.causes:
        before = f"; {value_text(verdict.metric, failure.before)} before the fall"
    elif fall is not None and not math.isnan(failure.before):
        before = ", which follows from the fall"
    if verdict.metric == "finished":
        yield f"the run ended early{before}"
    else:
        value = value_text(verdict.metric, verdict.value)
        yield f"{name}{where} is {value}, required {limit_text(verdict)}{before}"
    for cause in failure.causes:
        if cause.share >= SMALL:
            yield f"  due to {cause.name}: without it {_value(failure, cause)}"
    yield from _other_lines(failure.causes)


def _other_lines(causes: Sequence[Cause]) -> Iterator[str]:
    """Yield what a failure is not due to."""
    others = [cause.name for cause in causes if cause.share < SMALL]
    if others:
        yield f"  not due to {', '.join(others)}"
    unknown = [cause.name for cause in causes if math.isnan(cause.share)]
    if unknown:
        yield f"  could not be run or measured without {', '.join(unknown)}"
    if causes and not any(cause.share >= SMALL for cause in causes):
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
