"""Median and worst case of each metric over many runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbcasadi.validation.metrics import METRICS, Metric, Verdict, base_name


@dataclass(frozen=True)
class SummaryRow:
    """One metric over all runs.

    Attributes:
        metric: its name.
        median, worst: over the runs that have it.
        worst_case: number of the run with the worst value.
        limit: of the criterion on it, or None.
        failed: number of runs that did not fulfil the criterion, or None.
    """

    metric: str
    median: float
    worst: float
    worst_case: int
    limit: float | None
    failed: int | None


def summary_rows(
    metrics: Sequence[Sequence[Metric]],
    verdicts: Sequence[Sequence[Verdict]],
    numbers: Sequence[int],
) -> list[SummaryRow]:
    """Return one row for each metric; all arguments have one element for each run."""
    values = [{m.name: m.value for m in run} for run in metrics]
    judged = [{v.metric: v for v in run} for run in verdicts]
    names = dict.fromkeys(name for run in values for name in run)
    return [_summary_row(name, values, judged, numbers) for name in names]


def _summary_row(
    name: str,
    values: Sequence[dict[str, float]],
    judged: Sequence[dict[str, Verdict]],
    numbers: Sequence[int],
) -> SummaryRow:
    column = np.array([run.get(name, np.nan) for run in values])
    lower = METRICS[base_name(name)].larger_is_better
    measured = np.flatnonzero(~np.isnan(column))
    pick = np.argmin if lower else np.argmax
    worst = int(measured[pick(column[measured])]) if measured.size else 0
    criteria = [run[name] for run in judged if name in run]
    return SummaryRow(
        metric=name,
        median=float(np.median(column[measured])) if measured.size else np.nan,
        worst=float(column[worst]),
        worst_case=numbers[worst],
        limit=criteria[-1].limit if criteria else None,
        failed=sum(verdict.passed is False for verdict in criteria) if criteria else None,
    )
