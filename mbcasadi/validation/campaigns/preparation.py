"""What a campaign needs before its first case: the controller as data, and what cases share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from numpy.typing import ArrayLike

from mbcasadi.codegen import export_c
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Source, compile_model
from mbcasadi.validation.campaigns.case import Case
from mbcasadi.validation.campaigns.kit import Kit, conditions_of, make_kit
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    Controllable,
    Disturbance,
    FastLaw,
    ProgressReporter,
    Runnable,
    ScenarioOptions,
    TimeSignal,
    as_runnable,
    controller_of,
    fast_law,
    pushes_of,
    require_pushes,
)
from mbcasadi.validation.metrics import Criteria, require_reportable
from mbcasadi.validation.report import unreported_notes
from mbcasadi.validation.run import (
    PlantFactory,
    fitted_to_plant,
    initial_configuration,
    period_of,
    plants_for_period,
    reference_or_stay,
)


class Ready(NamedTuple):
    """A campaign before its first case.

    Attributes:
        kit: what its cases share.
        law: the controller, where it runs in this process already.
        notes: on conditions that were not given, and on what is not reported.
    """

    kit: Kit
    law: Runnable | None
    notes: tuple[str, ...]


@contextmanager
def prepared(
    controller: Controllable,
    model: Source,
    duration: float,
    cases: Sequence[Case],
    *,
    period: float | None,
    reference: TimeSignal,
    q0: ArrayLike | None,
    v0: ArrayLike | None,
    rigid: bool,
    disturbance: Disturbance,
    fast: bool,
    scenario: ScenarioOptions | None,
    criteria: Criteria | None,
    report: ProgressReporter,
) -> Iterator[Ready]:
    """Export a controller of ours, and yield what cases need, with the conditions of `validate`.

    The arguments are those of `campaign`.
    """
    options, criteria = scenario or ScenarioOptions(), criteria or Criteria()
    _require_cases(cases, options, reference, disturbance)
    compiled = compile_model(model)
    plants = PlantFactory(compiled, rigid, options.timestep)
    plant = plants.make()
    given = as_runnable(controller, plant, period)
    plants, plant, notes = plants_for_period(plants, plant, period_of(given))
    require_pushes(pushes_of(disturbance), plant, duration)
    delays = {case.delay for case in cases}
    given = fitted_to_plant(given, plant, delays.pop() if len(delays) == 1 else 0)
    start = initial_configuration(plant, q0, options.keyframe)
    stay = reference_or_stay(given, reference, plant, start, options.outer is not None)
    if fast:
        given = fast_law(given, len(cases) * round(duration / period_of(given)), report.note)
    report("generating C", 0.0)
    with TemporaryDirectory(prefix="mbcasadi-") as folder:
        law = given if isinstance(given, Runnable) else None
        if not isinstance(given, Runnable):
            data = controller_of(given)
            project = export_c(data, Path(folder) / "c", progress=report.note)
            given = CompiledLaw(data, data.function, project)
        require_reportable(given.controller)
        conditions = conditions_of(
            given.controller, duration, replace(options, timestep=plants.timestep),
            reference=stay.reference, q0=q0, v0=v0, rigid=rigid, disturbance=disturbance,
        )  # fmt: skip
        kit = make_kit(given, compiled, conditions, criteria, len(cases))
        notes += (*stay.notes, *_notes_on(given, kit))
        yield Ready(kit, None if kit.controller.has_state else law, notes)


def _require_cases(
    cases: Sequence[Case],
    options: ScenarioOptions,
    reference: TimeSignal,
    disturbance: Disturbance,
) -> None:
    if not cases:
        raise ProblemError("a campaign needs at least one case")
    if options.seed is not None:
        raise ProblemError("each case of a campaign has a seed; leave seed out of the scenario")
    if disturbance is None and any(case.disturbance != 1.0 for case in cases):
        raise ProblemError(
            "the cases scale a disturbance, and there is none; give disturbance=Push(...) or "
            "another force, --push on the command line, or [[validation.push]] in the file"
        )
    if options.outer is not None and reference is not None:
        raise ProblemError("an outer law computes the reference; give reference or outer, not both")


def _notes_on(law: Runnable, kit: Kit) -> Iterator[str]:
    """Yield notes on how the controller runs."""
    yield from unreported_notes(law)
    if isinstance(law, FastLaw):
        yield f"Fast: all cases have run {law.kind}."
    if kit.controller.stays:
        yield f"All cases have run in one process: {kit.controller.stays}."
