"""The C of a controller behind a run: the times of its ticks, and whether it computes the same."""

from dataclasses import replace

from mbcasadi.codegen import TickTimes
from mbcasadi.errors import ExportError
from mbcasadi.progress import ProgressReporter
from mbcasadi.validation.closed_loop import EarlyLaw, Recording, Runnable
from mbcasadi.validation.closed_loop.outer_law import TIMED_TICKS
from mbcasadi.validation.metrics import SAME_IN_C, Criteria, Verdict
from mbcasadi.validation.metrics.control_metrics import time_metrics
from mbcasadi.validation.metrics.text import tick_count
from mbcasadi.validation.run.run import Run

SAME = 1e-4
"""Of the largest control: the Function's QP solver is another one than the C's, and both end within
their tolerances."""


def needs_c_first(criteria: Criteria) -> bool:
    """Whether criteria judge what only a run of the C has: the times of its ticks."""
    return any(name.startswith("time.") for name in criteria.limits or {})


def time_ticks(law: Runnable, recording: Recording) -> tuple[TickTimes | None, tuple[str, ...]]:
    """Return the time of each tick of C, called in C with the inputs of the run, and notes."""
    timed = slice(0, TIMED_TICKS)
    names = ("q", "v", "act", "ref", "tuning", "p", "mask")
    inputs = {name: getattr(recording, name)[timed] for name in names}
    inputs["t"] = recording.t[timed, None]
    inputs["f_c"] = recording.equality_force[timed]
    inputs["f_measured"] = recording.f_measured[timed]
    try:
        return law.times(inputs), ()
    except ExportError as error:  # an export that runs, in a folder where nothing can be built
        return None, (f"The ticks were not timed: {error}",)


def with_c(run: Run, law: EarlyLaw, timing: bool, progress: ProgressReporter) -> Run:
    """Return a run of the Function with what its C says of the same ticks.

    Args:
        run: by the Function.
        law: that ran.
        timing: whether ticks are timed.
        progress: of the work.

    Raises:
        ExportError: the C could not be generated or built.
    """
    progress("waiting for the C", 0.9)
    compiled = law.compiled()
    progress("computing the ticks again in C", 0.95)
    difference = law.difference(compiled)
    times, untimed = time_ticks(compiled, run.recording) if timing else (None, ())
    same = difference.share <= SAME and not difference.unsafe
    ticks, share = tick_count(run.recording.ticks), f"{difference.share:.1g} of the largest"
    sentence = (
        f"The C gives the Function's controls at the inputs of all {ticks}, to {share}."
        if same
        else f"At the inputs of {ticks} the C's controls differ from the Function's by {share}, "
        f"and {difference.unsafe} have a safe output of the C only: a defect of mbcasadi or of "
        "the compiler, which we ask you to report; flags=('-O1',) of the export may avoid it."
    )
    if difference.other:
        sentence += f" In {difference.other} of them the status is another one."
    return replace(
        run,
        settings={**run.settings, **compiled.facts()},
        times=times,
        metrics=(*run.metrics, *time_metrics(times, run.controller.period)),
        verdicts=(*run.verdicts, Verdict(SAME_IN_C, 1.0, True, float(same), same)),
        notes=(*run.notes, sentence, *untimed),
    )
