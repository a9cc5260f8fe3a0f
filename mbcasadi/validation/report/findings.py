"""What a reader should know of a run beside its criteria, in sentences."""

from collections.abc import Iterator, Sequence

from mbcasadi.description import Controller
from mbcasadi.description.controller import UNREPORTED
from mbcasadi.plant import Plant
from mbcasadi.plant.contact_share import ENOUGH, contact_share, contact_step
from mbcasadi.plant.contacts import find_frame, find_point
from mbcasadi.validation.closed_loop import Recording, Runnable, Scenario
from mbcasadi.validation.closed_loop.tick_row import KINDS
from mbcasadi.validation.metrics import Criteria, Metric, StatusRow
from mbcasadi.validation.metrics.criteria import missed_defaults
from mbcasadi.validation.metrics.text import (
    limit_text,
    metric_text,
    plan_error_text,
    tick_count,
    value_text,
)
from mbcasadi.validation.run import Run, delay_ticks, servo_notes, wrong_rates


def findings(run: Run) -> list[str]:
    """Return why a run failed, safe outputs, violated bounds, late ticks, errors of plans."""
    why = [] if run.diagnosis is None else run.diagnosis.sentences
    return [*why, *_failures(run), *_excesses(run), *_late_ticks(run), *_plan_errors(run)]


def all_status_rows(run: Run) -> list[tuple[str, StatusRow]]:
    """Return the statuses of the law and of an outer law; the outer law's name is a prefix."""
    rows = [("", row) for row in run.status_rows]
    if run.outer is not None:
        rows += [(f"{run.outer.name}: ", row) for row in run.outer.status_rows]
    return rows


def _failures(run: Run) -> Iterator[str]:
    for prefix, row in all_status_rows(run):
        if row.safe:
            yield (
                f"{prefix}{row.text}: {tick_count(row.ticks)}, the first at {row.first:g} s, at "
                f"most {row.longest} in a row"
            )


def _excesses(run: Run) -> Iterator[str]:
    for row in run.margins:
        if row.beyond:
            soft, unit = " (soft)" if row.soft else "", f" {row.unit}" if row.unit else ""
            yield (
                f"{row.name}{soft} was beyond its bound in {_share(row.beyond)} of the ticks, "
                f"most by {-row.least:.3g}{unit} at {row.when:g} s"
            )


def _late_ticks(run: Run) -> Iterator[str]:
    late = run.metric("time.late")
    if late > 0:
        yield f"{_share(late)} of the ticks took longer than the period"


def _plan_errors(run: Run) -> Iterator[str]:
    if run.predictions is not None:
        ahead = plan_error_text(run.predictions, "next")
        end = plan_error_text(run.predictions, "end")
        yield (
            f"error of the plans, of the motion: {ahead} one sample ahead, {end} at the end of the "
            "horizon"
        )


def _share(value: float) -> str:
    return value_text("limits.beyond", value)


def unreported_notes(law: Runnable) -> list[str]:
    """Return a note on what a controller does not report."""
    unreported = [UNREPORTED[key] for key in law.controller.unreported]
    return (
        [f"Left out, as {law.kind} does not report it: {', '.join(unreported)}."]
        if unreported
        else []
    )


def missed_notes(metrics: Sequence[Metric], criteria: Criteria) -> list[str]:
    """Return a note on the defaults that a run misses, and that its own criteria replace."""
    missed = [
        f"{metric_text(x.metric)}: {value_text(x.metric, x.value)}, required {limit_text(x)}"
        for x in missed_defaults(metrics, criteria)
    ]
    before = "The run misses default criteria, which its own replace: "
    return [f"{before}{'; '.join(missed)}."] if missed else []


def run_notes(
    controller: Controller, recording: Recording, scenario: Scenario, plant: Plant
) -> list[str]:
    """Return notes on the reference, on what is not judged, on delay, servos and estimator.

    The reference of an outer law jumps with each plan, so that its differences are no rates.
    """
    wrong = [] if scenario.options.outer else wrong_rates(controller, recording)
    return [
        *(f"{each}." for each in wrong),
        *_secondary_notes(controller),
        *_delay_notes(controller, scenario, plant),
        *servo_notes(controller, plant, scenario.delay),
        *_contact_notes(controller, recording, plant),
        *_estimator_notes(scenario),
    ]


def _estimator_notes(scenario: Scenario) -> Iterator[str]:
    """Yield a note on what no sensor of the estimator in the loop observes."""
    if scenario.estimator is not None:
        unseen = scenario.estimator.sensing.estimator.unobservable
        yield from [f"Nothing observes: {'; '.join(unseen)}."] if unseen else []


def _contact_notes(controller: Controller, recording: Recording, plant: Plant) -> Iterator[str]:
    """Yield a note where the step damps what contact forces were found for."""
    model, q, contacts = plant.model, recording.q[0], controller.contacts
    frames = [find_point(model, c.frame, *c.place) for c in contacts if c.place]
    for kind in KINDS:
        frames += [find_frame(model, c.frame, kind) for c in contacts if c.kind == kind]
    share = contact_share(model, q, frames, plant.timestep)
    if share < ENOUGH:
        yield (
            f"Steps of {1e3 * plant.timestep:g} ms damp joints and servos behind the contacts: "
            f"{share:.2f} of what contact forces bring about is left, they slide and "
            f"bounce {1 / share:.1f} times as long as solref says. "
            f"ScenarioOptions(timestep={contact_step(model, q, frames):g}) leaves more."
        )


def _secondary_notes(controller: Controller) -> Iterator[str]:
    """Yield a note on tasks that are not judged."""
    tasks = dict.fromkeys(name.split(".")[0] for name in controller.secondary)
    if tasks:
        yield (
            f"Reported, not judged: {', '.join(tasks)} ({len(controller.secondary)} rows), as "
            "tasks of far more weight, or of a level before, decide their motion."
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
