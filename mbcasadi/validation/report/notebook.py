"""What a notebook shows of a report: its criteria, and one plot. Without matplotlib the criteria."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mbcasadi.errors import MissingExtraError
from mbcasadi.inline_svg import styled_figure, svg_text
from mbcasadi.short_text import html_rows
from mbcasadi.validation.metrics import passed
from mbcasadi.validation.metrics.text import limit_text, metric_text, value_text, verdict_word
from mbcasadi.validation.report.figures import first_plot, fit_axes, thin_lines
from mbcasadi.validation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = {True: "ok", False: "FAILED", None: "not judged"}
NARROW = "max-width:36em"


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


def picture(title: str, draw: "Callable[[Axes], None]") -> str:
    """Return a plot on white as inline SVG; "" without matplotlib."""
    try:
        with styled_figure(title, figure_facecolor="white") as figure:
            axes = figure.add_subplot()
            draw(axes)
            thin_lines(axes)
            fit_axes(axes)
            svg = svg_text(figure)
    except MissingExtraError:
        return ""
    return f"{html_rows(title, (), ())}<div style='{NARROW}'>{svg}</div>"
