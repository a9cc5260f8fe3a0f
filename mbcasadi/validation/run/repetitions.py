"""Repetitions of a failed run, each without one thing, in a bounded number of ticks.

Where a robot falls, ticks are slow: its QPs have no solution, and most of its shapes touch the
ground. Repetitions end where theirs has fallen, and at the latest some time after the fall of the
run; their metrics are those of the ticks before that fall. Where the law has contacts, no
repetition begins once those before have as many ticks as some runs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mbcasadi.errors import MbcasadiError
from mbcasadi.plant import Plant
from mbcasadi.progress import Progress
from mbcasadi.validation.closed_loop import Recording, run_loop
from mbcasadi.validation.metrics import Criteria, Verdict, run_statistics
from mbcasadi.validation.metrics.end_after_fall import upright_of
from mbcasadi.validation.metrics.standing import Upright
from mbcasadi.validation.run.conditions import FinishedRun
from mbcasadi.validation.run.experiments import Experiment, experiments

START = 0.25
"""Share of the run after which its start is over."""

SETTLED = ("tracking.", "prediction.", "contact.force")
"""Metrics that `Criteria.settle` applies to."""

LONGER = 1.5
"""Time of a repetition, of that to the fall: who stands so long stands longer for a reason."""

MOST_RUNS = 2
"""Runs as long as which repetitions of a law with contacts are, before the last one begins."""


class Fall(NamedTuple):
    """That a robot falls in a run.

    Attributes:
        upright: what it had to keep.
        tick: at which it has fallen; at least one.
        end: number of ticks of a repetition.
    """

    upright: Upright
    tick: int
    end: int


@dataclass(frozen=True)
class Repetitions:
    """What repetitions gave, by cause.

    Attributes:
        values: name of a metric → its value, up to the fall of the run; none where a plant cannot
            be run.
        stood: ticks before the robot had fallen, where it falls in the run.
        left_out: causes that were not looked at.
    """

    values: Mapping[str, dict[str, float]] = field(default_factory=dict)
    stood: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def fall_of(run: FinishedRun, criteria: Criteria) -> Fall | None:
    """Return when a robot has fallen, by the criteria or else the defaults; None if none does."""
    model, recording = run.plants.make().model, run.recording
    upright = upright_of(recording, model, criteria)
    tick = upright.first_lost(recording, model)
    if not tick:
        return None
    whole = round(run.scenario.duration / run.law.controller.period)
    return Fall(upright, tick, min(whole, math.ceil(LONGER * tick)))


def own_values(
    run: FinishedRun, criteria: Criteria, verdicts: Sequence[Verdict], fall: Fall | None
) -> dict[str, float]:
    """Return the metrics of a run, up to its fall, and as `finished` the share of its time."""
    if fall is None:
        values = {verdict.metric: verdict.value for verdict in verdicts}
        return values | {"finished": _share_run(run.recording, run)}
    return _values(run, criteria, run.recording.before(fall.tick))


def repeat(
    run: FinishedRun, criteria: Criteria, fall: Fall | None, progress: Progress
) -> Repetitions:
    """Repeat a run without each thing that may have spoilt it, as long as ticks are left."""
    bounded = bool(run.law.controller.contacts)
    most = MOST_RUNS * round(run.scenario.duration / run.law.controller.period)
    seen = run if fall is None else _up_to(run, fall.tick)
    values: dict[str, dict[str, float]] = {}
    stood, left_out, ticks = dict[str, int](), list[str](), 0
    for each in experiments(seen):
        if bounded and ticks >= most:
            left_out.append(each.cause)
            continue
        progress(f"repeating the run without {each.cause}", 0.87)
        try:
            recording, values[each.cause] = _repeated(each, run, criteria, fall)
        except MbcasadiError:  # this plant cannot be run: nothing is known of this cause
            values[each.cause] = {}
            continue
        ticks += recording.ticks
        if fall is not None:
            stood[each.cause] = recording.ticks
    return Repetitions(values, stood, tuple(left_out))


def _up_to(run: FinishedRun, tick: int) -> FinishedRun:
    """Return a run as it was before a tick."""
    return replace(run, recording=run.recording.before(tick))


def _repeated(
    each: Experiment, run: FinishedRun, criteria: Criteria, fall: Fall | None
) -> tuple[Recording, dict[str, float]]:
    """Return a repetition, and its metrics before the fall of the run."""
    law, plant = each.law or run.law, (each.make_plant or run.plants.make)()
    scenario = each.scenario or run.scenario
    if fall is None:
        recording = run_loop(law, plant, scenario)
        return recording, _values(replace(run, law=law), criteria, recording, plant)
    scenario = replace(scenario, duration=fall.end * law.controller.period)
    recording = run_loop(law, plant, scenario, until=lambda data, _: fall.upright.is_lost(data))
    compared = recording.before(min(fall.tick, recording.ticks))
    return recording, _values(replace(run, law=law), criteria, compared, plant)


def values_after_start(run: FinishedRun, criteria: Criteria, fall: Fall | None) -> dict[str, float]:
    """Return the metrics of the run itself after its start, up to its fall.

    Those that know a settling time get it, as errors are related to those at the start of a run.
    """
    recording = run.recording if fall is None else run.recording.before(fall.tick)
    duration = recording.ticks * run.law.controller.period
    settled = replace(criteria, settle=max(criteria.settle, START * duration))
    first = int(START * recording.ticks)
    later = _values(run, criteria, recording.later(first))
    of_run = _values(run, settled, recording)
    finished = {"finished": _share_run(recording, run)}
    return later | {k: x for k, x in of_run.items() if k.startswith(SETTLED)} | finished


def _values(
    run: FinishedRun, criteria: Criteria, recording: Recording, plant: Plant | None = None
) -> dict[str, float]:
    """Return the metrics of ticks of a run, on its plant unless another is given."""
    plant = plant or run.plants.make()
    metrics = run_statistics(run.law.controller, recording, plant, criteria).metrics
    values = {metric.name: metric.value for metric in metrics}
    return values | {"finished": _share_run(recording, run)}


def _share_run(recording: Recording, run: FinishedRun) -> float:
    """Return the share of the duration that a run reached; one where nothing ended it."""
    ticks = run.scenario.duration / run.law.controller.period
    return 1.0 if not recording.events else recording.ticks / max(1.0, ticks)
