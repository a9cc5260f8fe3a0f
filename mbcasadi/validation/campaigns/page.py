"""A campaign as one self-contained HTML page, and what a notebook shows of it."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mbcasadi.errors import ProblemError
from mbcasadi.inline_svg import picture
from mbcasadi.short_text import html_rows
from mbcasadi.validation.campaigns.outcome import Outcome, Sensitivity
from mbcasadi.validation.campaigns.plots import campaign_figures, campaign_plots
from mbcasadi.validation.metrics import text
from mbcasadi.validation.metrics.text import metric_text, number_text, value_text
from mbcasadi.validation.report import SummaryRow
from mbcasadi.validation.report.pages import page_template
from mbcasadi.validation.versions import package_versions

WORST = 10  # cases that a page lists
NOTHING = ("", "–")
"""Cells without content."""


class Facts(NamedTuple):
    """What a page says of a campaign; the names are those of `Campaign`.

    Attributes:
        worst: outcomes, the worst first.
        judged: metrics with a criterion.
    """

    settings: Mapping[str, str]
    passed: bool | None
    headline: str
    outcomes: Sequence[Outcome]
    failures: Mapping[str, int]
    worst: Sequence[Outcome]
    judged: Sequence[str]
    sensitivity: Sequence[Sensitivity]
    summary: Sequence[SummaryRow]


class Table(NamedTuple):
    """A table: headings, whether each column has numbers, and the cells of each row."""

    headings: list[str]
    is_number: list[bool]
    rows: list[list[str]]


class _Video(NamedTuple):
    """An mp4 on the page, as base64, with its case."""

    outcome: Outcome
    content: str


def campaign_page(campaign: Facts, title: str, videos: Mapping[int, str | Path]) -> str:
    """Return the HTML page: nothing in it refers to another file or to the network.

    Args:
        campaign: complete or not.
        title: heading; controller and model where it is "".
        videos: number of a case → its `.mp4`.

    Raises:
        ProblemError: a video cannot be read, or is of a case that was not run.
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    template = page_template(
        "campaign.html.j2", metric_text=metric_text, verdict_word=text.verdict_word
    )
    return template.render(
        title=title or default_title(campaign.settings),
        campaign=campaign,
        failures=campaign.failures,
        worst=[(outcome, _reasons(outcome)) for outcome in campaign.worst[:WORST]],
        videos=list(_videos(campaign.outcomes, videos)),
        sensitivity=sensitivity_table(campaign.sensitivity),
        summary=summary_table(campaign.summary),
        figures=campaign_figures(campaign.outcomes, campaign.judged),
        versions=package_versions(),
    )


def campaign_html(
    heading: str, outcomes: Sequence[Outcome], judged: Sequence[str], summary: Sequence[SummaryRow]
) -> str:
    """Return the judged metrics as a table for a notebook, and one plot."""
    table = summary_table([row for row in summary if row.metric in judged])
    shown = html_rows(heading, table.headings, table.rows)
    plot = next(campaign_plots(outcomes, judged), None)
    return shown if plot is None else shown + picture(plot[0], plot[2])


def default_title(settings: Mapping[str, str]) -> str:
    """Return a heading with controller and model, where they are known."""
    names = settings.get("controller", ""), settings.get("model", "")
    return f"Campaign: {names[0]} on {names[1]}" if all(names) else "Campaign"


def summary_table(summary: Sequence[SummaryRow]) -> Table:
    """Return one row for each metric."""
    headings = ("Metric", "Median", "Worst", "In case", "Limit", "Failed")
    rows = [
        (
            metric_text(row.metric),
            value_text(row.metric, row.median),
            value_text(row.metric, row.worst),
            str(row.worst_case),
            "" if row.limit is None else value_text(row.metric, row.limit),
            "" if row.failed is None else str(row.failed),
        )
        for row in summary
    ]
    return filled_columns(headings, rows, words=1)


def sensitivity_table(sensitivity: Sequence[Sensitivity]) -> Table:
    """Return one row for each metric and parameter, without columns that the design lacks."""
    headings = (
        "Metric", "Parameter", "Correlation", "With size", "p-value", "Regression",
        "Sobol, first", "Sobol, total",
    )  # fmt: skip
    rows = [
        (
            metric_text(row.metric),
            row.parameter,
            f"{row.correlation:+.2f}",
            number_text(row.size_correlation),
            f"{row.p_value:.1e}",
            f"{row.regression:+.2f}",
            number_text(row.sobol_first),
            number_text(row.sobol_total),
        )
        for row in sensitivity
    ]
    return filled_columns(headings, rows, words=2)


def filled_columns(headings: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> Table:
    """Return a table without its empty columns; the first `words` columns have no numbers."""
    kept = [k for k in range(len(headings)) if any(row[k] not in NOTHING for row in rows)]
    cells = [[row[k] for k in kept] for row in rows]
    return Table([headings[k] for k in kept], [k >= words for k in kept], cells)


def _reasons(outcome: Outcome) -> str:
    return "; ".join((*outcome.events, *map(metric_text, outcome.failed)))


def _videos(outcomes: Sequence[Outcome], paths: Mapping[int, str | Path]) -> Iterator[_Video]:
    by_number = {outcome.number: outcome for outcome in outcomes}
    for number, path in paths.items():
        if number not in by_number:
            raise ProblemError(f"{path} shows case {number}, which this campaign has not run")
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise ProblemError(f"cannot read the video {path}: {error.strerror}") from error
        yield _Video(by_number[number], base64.b64encode(content).decode("ascii"))
