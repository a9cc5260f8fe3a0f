"""What a reader should know of a run beside its criteria, in sentences."""

import math
from collections.abc import Iterator

from mbcasadi.validation.report.text import ticks, value_words
from mbcasadi.validation.run.run import Run


def findings(run: Run) -> list[str]:
    """Return failures with their dates, bounds that were left, ticks that were late, and plans."""
    return [*_failures(run), *_excesses(run), *_late(run), *_plans(run)]


def _failures(run: Run) -> Iterator[str]:
    told = [("", row) for row in run.status_rows]
    if run.outer is not None:
        told += [(f"{run.outer.name}: ", row) for row in run.outer.status_rows]
    for name, row in told:
        if row.safe:
            yield (
                f"{name}{row.words}: {ticks(row.ticks)}, the first at {row.first:g} s, at most "
                f"{row.longest} in a row"
            )


def _excesses(run: Run) -> Iterator[str]:
    for row in run.margins:
        if row.beyond:
            soft, unit = " (soft)" if row.soft else "", f" {row.unit}" if row.unit else ""
            yield (
                f"{row.name}{soft} was beyond its bound in {_share(row.beyond)} of the ticks, "
                f"most by {-row.least:.3g}{unit} at {row.when:g} s"
            )


def _late(run: Run) -> Iterator[str]:
    late = run.metric("time.late")
    if late > 0:
        yield f"{_share(late)} of the ticks took longer than the period"


def _plans(run: Run) -> Iterator[str]:
    parts = []
    for name, words in (("next", "one sample ahead"), ("end", "at the end of the horizon")):
        missed = run.metric(f"prediction.{name}")
        parts += [] if math.isnan(missed) else [f"{_share(missed)} {words}"]
    if parts:
        yield f"plans miss, of the motion, {' and '.join(parts)}"


def _share(value: float) -> str:
    return value_words("limits.beyond", value)
