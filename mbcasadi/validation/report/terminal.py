"""Reports as tables in the terminal, for `rich`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mbcasadi.validation.metrics import Verdict
from mbcasadi.validation.report.extras import require
from mbcasadi.validation.report.summary import SummaryRow
from mbcasadi.validation.report.text import (
    limit_text,
    metric_text,
    value_text,
    what_if_cells,
    what_if_headings,
)
from mbcasadi.validation.run import WhatIf

if TYPE_CHECKING:
    from rich.table import Table


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
    require("rich.markup", "a table")
    from rich.markup import escape  # names of a model are no markup

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
    require("rich.markup", "a table")
    from rich.markup import escape

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


def what_if_table(conditions: WhatIf, title: str) -> "Table":
    """Return a table with one row for each condition.

    Raises:
        MissingExtraError: rich is not installed.
    """
    require("rich.markup", "a table")
    from rich.markup import escape

    table = _table(escape(title), ("condition",), what_if_headings(conditions))
    for row in conditions.rows:
        table.add_row(escape(row.name), *what_if_cells(row))
    return table


def _table(title: str, left: Sequence[str], right: Sequence[str]) -> "Table":
    """Return an empty table with columns set to the left, then columns set to the right."""
    require("rich.table", "a table")
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False)
    for heading in left:
        table.add_column(heading)
    for heading in right:
        table.add_column(heading, justify="right")
    return table
