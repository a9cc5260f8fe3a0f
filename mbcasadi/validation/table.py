"""Reports in the terminal."""

from typing import TYPE_CHECKING, Any

from mbcasadi.validation.extras import require
from mbcasadi.validation.words import limit_words, metric_words, value_words

if TYPE_CHECKING:
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
