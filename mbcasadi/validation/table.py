"""Reports in the terminal."""

from typing import TYPE_CHECKING, Any

from mbcasadi.validation.extras import require
from mbcasadi.validation.words import (
    limit_words,
    metric_words,
    value_words,
    what_if_cells,
    what_if_headings,
)

if TYPE_CHECKING:
    from mbcasadi.validation.campaigns import Campaign
    from mbcasadi.validation.conditions import WhatIf
    from mbcasadi.validation.report import Report


def criteria_table(report: "Report") -> Any:
    """Return a rich table with one row for each criterion of each run."""
    table = require("rich.table", "a table").Table(
        title=f"{report.title}: {'passed' if report.passed else 'FAILED'}",
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
    for run in report.runs:
        for i, verdict in enumerate(run.verdicts):
            table.add_row(
                run.name if i == 0 else "",
                metric_words(verdict.metric),
                value_words(verdict.metric, verdict.value),
                limit_words(verdict),
                "[green]ok[/green]" if verdict.passed else "[bold red]FAILED[/bold red]",
                end_section=i == len(run.verdicts) - 1,
            )
    return table


def campaign_table(campaign: "Campaign") -> Any:
    """Return a rich table with median and worst case of each metric."""
    held = sum(outcome.passed for outcome in campaign.outcomes)
    table = require("rich.table", "a table").Table(
        title=f"{held} of {len(campaign.outcomes)} runs passed",
        title_justify="left",
        title_style="bold",
        show_edge=False,
    )
    table.add_column("quantity")
    for heading in ("median", "worst", "in run", "limit", "failed"):
        table.add_column(heading, justify="right")
    for row in campaign.summary():
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


def what_if_table(found: "WhatIf", title: str) -> Any:
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
