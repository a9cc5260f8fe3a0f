"""What a campaign needs before its first case: the controller as data, and what cases share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mbcasadi.codegen import export_c
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.estimator import require_same_period
from mbcasadi.plant import Source, compile_model
from mbcasadi.progress import ProgressReporter
from mbcasadi.validation.campaigns.case import Case
from mbcasadi.validation.campaigns.kit import Kit, make_kit
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    Controllable,
    FastLaw,
    Runnable,
    controller_of,
    fast_law,
    model_with_sensors,
)
from mbcasadi.validation.metrics import require_reportable
from mbcasadi.validation.report import unreported_notes
from mbcasadi.validation.run import period_of, prepare
from mbcasadi.validation.trial import Trial


class Ready(NamedTuple):
    """A campaign before its first case.

    Attributes:
        kit: what its cases share.
        law: the controller, where it runs in this process already.
        notes: on conditions that were not given, and on what is not reported.
        settings: model, controller, what ran, duration.
    """

    kit: Kit
    law: Runnable | None
    notes: tuple[str, ...]
    settings: dict[str, str]


@contextmanager
def prepared(
    controller: Controllable,
    model: Source,
    trial: Trial,
    cases: Sequence[Case],
    report: ProgressReporter,
) -> Iterator[Ready]:
    """Export a controller of ours, and yield what cases need; the arguments are `campaign`'s."""
    _require_cases(cases, trial)
    if trial.sensors is not None:
        model = model_with_sensors(trial.sensors, model)
    compiled = compile_model(model)
    delays = {case.delay for case in cases}
    known = replace(trial, delay=delays.pop() if len(delays) == 1 else 0)
    ready = prepare(controller, compiled, known)
    given = ready.controller
    if trial.sensors is not None:
        require_same_period(trial.sensors.estimator, period_of(given))
    if trial.fast:
        ticks = len(cases) * round(trial.duration / period_of(given))
        given = fast_law(given, ticks, report.note)
    for note in ready.notes:
        report(note, 0.0)
    report("generating C", 0.0)
    with TemporaryDirectory(prefix="mbcasadi-") as folder:
        law = given if isinstance(given, Runnable) else None
        if not isinstance(given, Runnable):
            data = controller_of(given)
            project = export_c(data, Path(folder) / "c", progress=report.note)
            given = CompiledLaw(data, data.function, project)
        require_reportable(given.controller)
        scenario = replace(trial.scenario, timestep=ready.plants.timestep)
        shared = replace(trial, reference=ready.reference, scenario=scenario)
        kit = make_kit(given, compiled, shared, len(cases))
        notes = (*ready.notes, *_notes_on(given, kit))
        settings = {
            "model": ready.plant.name,
            "controller": given.controller.name,
            "what ran": given.kind,
            "duration": f"{trial.duration:g} s",
        }
        yield Ready(kit, None if kit.controller.has_state else law, notes, settings)


def _require_cases(cases: Sequence[Case], trial: Trial) -> None:
    if not cases:
        raise ProblemError("a campaign needs at least one case")
    if trial.scenario.seed is not None:
        raise ProblemError("each case of a campaign has a seed; leave seed out of the scenario")
    if trial.perturb or trial.delay:
        raise ProblemError(
            f"each case of a campaign has its own errors and delay; the trial has perturb = "
            f"{dict(trial.perturb)} and delay = {trial.delay}: give them to the cases"
        )
    if trial.disturbance is None and any(case.disturbance != 1.0 for case in cases):
        raise ProblemError(
            "the cases scale a disturbance, and there is none; give disturbance=Push(...) or "
            "another force, --push on the command line, or [[validation.push]] in the file"
        )
    if trial.sensors is None and any(case.sensor_noise != 1.0 for case in cases):
        raise ProblemError(
            "the cases scale the noise of sensors, and q and v are given as they are; give "
            "sensors=Sensing(...), or the table [estimation] in the file"
        )


def _notes_on(law: Runnable, kit: Kit) -> Iterator[str]:
    """Yield notes on how the controller runs."""
    yield from unreported_notes(law)
    if isinstance(law, FastLaw):
        yield f"Fast: all cases have run {law.kind}."
    if kit.controller.stays:
        yield f"All cases have run in one process: {kit.controller.stays}."
