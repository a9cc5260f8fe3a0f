"""What a notebook shows of a report: its criteria and, where matplotlib is, one plot."""

from collections.abc import Sequence

from mbcasadi.inline_svg import picture
from mbcasadi.short_text import html_rows
from mbcasadi.validation.metrics import passed
from mbcasadi.validation.metrics.text import limit_text, metric_text, value_text, verdict_word
from mbcasadi.validation.report.figures import first_plot
from mbcasadi.validation.run import Run

MARKS = {True: "ok", False: "FAILED", None: "not judged"}


def report_html(title: str, runs: Sequence[Run]) -> str:
    """Return the criteria of all runs, and the first plot of the first run that failed, or ran."""
    rows = [
        (
            run.name if i == 0 else "",
            metric_text(verdict.metric),
            value_text(verdict.metric, verdict.value),
            limit_text(verdict),
            MARKS[verdict.passed],
        )
        for run in runs
        for i, verdict in enumerate(run.verdicts)
    ]
    heading = f"{title}: {verdict_word(passed(run.passed for run in runs), 'FAILED')}"
    table = html_rows(heading, ("run", "criterion", "reached", "required", ""), rows)
    shown = next((run for run in runs if run.passed is False), runs[0])
    plot = first_plot(shown)
    return table if plot is None else table + picture(f"{shown.name}: {plot[0]}", plot[1])
