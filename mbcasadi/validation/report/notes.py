"""What a reader should know of the conditions of a run, in sentences."""

from collections.abc import Iterator

from mbcasadi.description import Controller
from mbcasadi.description.controller import UNREPORTED
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import Recording, Runnable, Scenario
from mbcasadi.validation.report.text import tick_count
from mbcasadi.validation.run import delay_ticks, servo_notes, wrong_rates


def unreported_notes(law: Runnable) -> list[str]:
    """Return a note on what a controller does not report."""
    unreported = [UNREPORTED[key] for key in law.controller.unreported]
    return (
        [f"Left out, as {law.kind} does not report it: {', '.join(unreported)}."]
        if unreported
        else []
    )


def run_notes(
    controller: Controller, recording: Recording, scenario: Scenario, plant: Plant
) -> list[str]:
    """Return notes on the reference, on what is not judged, and on delay and servos."""
    return [
        *(f"{each}." for each in map(str, wrong_rates(controller, recording))),
        *_secondary_notes(controller),
        *_delay_notes(controller, scenario, plant),
        *servo_notes(controller, plant, scenario.delay),
    ]


def _secondary_notes(controller: Controller) -> Iterator[str]:
    """Yield a note on tasks that are not judged."""
    tasks = dict.fromkeys(name.split(".")[0] for name in controller.secondary)
    if tasks:
        yield (
            f"Reported, not judged: {', '.join(tasks)} ({len(controller.secondary)} rows), as "
            "tasks of far more weight, or of a level before, leave them no freedom."
        )


def _delay_notes(controller: Controller, scenario: Scenario, plant: Plant) -> Iterator[str]:
    """Yield a note where a controller accounts for another delay than the plant's.

    Of laws without plans it matters where the model's own actuators are late.
    """
    own = delay_ticks(plant, controller.period)
    late = scenario.delay + own
    if controller.delay == late or (controller.prediction is None and not own):
        return
    effect = ": its plans begin at another moment than they act" if controller.prediction else ""
    yield (
        f"The law accounts for a delay of {tick_count(controller.delay)}, the plant has "
        f"{late}{effect}."
    )
