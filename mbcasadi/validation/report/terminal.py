"""Reports as tables in the terminal, for `rich`; median and worst case of many runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mbcasadi.extras import optional_module
from mbcasadi.validation.metrics import METRICS, Metric, Verdict, base_name
from mbcasadi.validation.metrics.text import (
    limit_text,
    metric_text,
    value_text,
)
from mbcasadi.validation.run import WhatIf

if TYPE_CHECKING:
    from rich.table import Table


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


MARKS = {
    True: "[green]ok[/green]",
    False: "[bold red]FAILED[/bold red]",
    None: "[yellow]not judged[/yellow]",
}


def criteria_table(title: str, rows: Iterable[tuple[str, Sequence[Verdict]]]) -> "Table":
    """Return a table of criteria; `rows` are (name, verdicts) of each run.

    Raises:
        MissingExtraError: rich is not installed.
    """
    escape = _escape()
    table = _table(title, ("run", "criterion"), ("reached", "required"))
    table.add_column("")
    for name, verdicts in rows:
        for i, verdict in enumerate(verdicts):
            table.add_row(
                escape(name) if i == 0 else "",
                escape(metric_text(verdict.metric)),
                value_text(verdict.metric, verdict.value),
                limit_text(verdict),
                MARKS[verdict.passed],
                end_section=i == len(verdicts) - 1,
            )
    return table


def campaign_table(title: str, rows: Iterable[SummaryRow]) -> "Table":
    """Return a table with median and worst case of each metric.

    Raises:
        MissingExtraError: rich is not installed.
    """
    escape = _escape()
    table = _table(title, ("quantity",), ("median", "worst", "in run", "limit", "failed"))
    for row in rows:
        table.add_row(
            escape(metric_text(row.metric)),
            value_text(row.metric, row.median),
            value_text(row.metric, row.worst),
            str(row.worst_case),
            "" if row.limit is None else value_text(row.metric, row.limit),
            "" if row.failed is None else str(row.failed),
        )
    return table


def side_by_side_table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> "Table":
    """Return a table whose first column is text, failures in red.

    Raises:
        MissingExtraError: rich is not installed.
    """
    escape = _escape()
    table = _table(escape(title), [escape(headings[0])], [*map(escape, headings[1:])])
    for row in rows:
        table.add_row(*(escape(cell).replace("FAILED", MARKS[False]) for cell in row))
    return table


def what_if_table(conditions: WhatIf, title: str) -> "Table":
    """Return a table with one row for each condition.

    Raises:
        MissingExtraError: rich is not installed.
    """
    escape = _escape()
    table = _table(escape(title), conditions.headings[:1], conditions.headings[1:])
    for row in conditions.rows:
        table.add_row(*map(escape, row.cells))
    return table


def _escape() -> Callable[[str], str]:
    """Return the function by which names of a model are no markup."""
    escape: Callable[[str], str] = optional_module("rich.markup", "tools", "a table").escape
    return escape


def _table(title: str, left: Sequence[str], right: Sequence[str]) -> "Table":
    """Return an empty table with columns set to the left, then columns set to the right."""
    table: Table = optional_module("rich.table", "tools", "a table").Table(
        title=title, title_justify="left", title_style="bold", show_edge=False
    )
    for heading in left:
        table.add_column(heading)
    for heading in right:
        table.add_column(heading, justify="right")
    return table
