"""Reports in the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mbcasadi.validation.metrics.criteria import Verdict
from mbcasadi.validation.report.extras import require
from mbcasadi.validation.report.text import (
    limit_words,
    metric_words,
    value_words,
    what_if_cells,
    what_if_headings,
)
from mbcasadi.validation.run.conditions import WhatIf


def criteria_table(title: str, rows: Iterable[tuple[str, Sequence[Verdict]]]) -> Any:
    """Return a rich table of criteria; `rows` are (name, verdicts) of each run."""
    table = require("rich.table", "a table").Table(
        title=title,
        title_justify="left",
        title_style="bold",
        show_edge=False,
    )
    for heading, justify in (
        ("run", "left"),
        ("criterion", "left"),
        ("reached", "right"),
        ("required", "right"),
        ("", "left"),
    ):
        table.add_column(heading, justify=justify)
    for name, verdicts in rows:
        for i, verdict in enumerate(verdicts):
            table.add_row(
                name if i == 0 else "",
                metric_words(verdict.metric),
                value_words(verdict.metric, verdict.value),
                limit_words(verdict),
                "[green]ok[/green]" if verdict.passed else "[bold red]FAILED[/bold red]",
                end_section=i == len(verdicts) - 1,
            )
    return table


def campaign_table(title: str, rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return a rich table with median and worst case of each metric; see `Campaign.summary`."""
    table = require("rich.table", "a table").Table(
        title=title,
        title_justify="left",
        title_style="bold",
        show_edge=False,
    )
    table.add_column("quantity")
    for heading in ("median", "worst", "in run", "limit", "failed"):
        table.add_column(heading, justify="right")
    for row in rows:
        limit = "" if row["limit"] is None else value_words(row["metric"], row["limit"])
        table.add_row(
            metric_words(row["metric"]),
            value_words(row["metric"], row["median"]),
            value_words(row["metric"], row["worst"]),
            str(row["worst_case"]),
            limit,
            "" if row["failed"] is None else str(row["failed"]),
        )
    return table


def what_if_table(found: WhatIf, title: str) -> Any:
    """Return a rich table with one row for each condition."""
    table = require("rich.table", "a table").Table(
        title=title, title_justify="left", title_style="bold", show_edge=False
    )
    table.add_column("condition")
    for heading in what_if_headings(found):
        table.add_column(heading, justify="right")
    for row in found.rows:
        table.add_row(row.name, *what_if_cells(row))
    return table
