"""What a reader should know of a run beside its criteria, in sentences."""

import math
from collections.abc import Iterator

from mbcasadi.validation.metrics import StatusRow
from mbcasadi.validation.report.text import tick_count, value_text
from mbcasadi.validation.report.why import reasons
from mbcasadi.validation.run import Run


def findings(run: Run) -> list[str]:
    """Return why a run failed, safe outputs, violated bounds, late ticks, errors of plans."""
    why = [] if run.diagnosis is None else reasons(run.diagnosis)
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
    errors = []
    for name, text in (("next", "one sample ahead"), ("end", "at the end of the horizon")):
        error = run.metric(f"prediction.{name}")
        errors += [] if math.isnan(error) else [f"{_share(error)} {text}"]
    if errors:
        yield f"error of the plans, of the motion: {', '.join(errors)}"


def _share(value: float) -> str:
    return value_text("limits.beyond", value)
