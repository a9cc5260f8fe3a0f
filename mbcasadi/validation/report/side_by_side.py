"""Several controllers side by side: one table of criteria, and their curves over each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.inline_svg import COLORS, picture
from mbcasadi.plots import save_figure
from mbcasadi.short_text import html_rows, summarised
from mbcasadi.validation.metrics import Verdict, passed
from mbcasadi.validation.metrics.text import (
    limit_text,
    metric_text,
    number_text,
    value_text,
    verdict_word,
)
from mbcasadi.validation.report.figures import plain_figures
from mbcasadi.validation.report.overlays import Overlay, overlays
from mbcasadi.validation.report.pages import Plain, json_text, page_template, plain_data, save_page
from mbcasadi.validation.report.report import Report
from mbcasadi.validation.report.terminal import side_by_side_table
from mbcasadi.validation.run import Run
from mbcasadi.validation.versions import package_versions

if TYPE_CHECKING:
    from rich.table import Table

PICTURES = {".png", ".svg", ".pdf"}
MOST_PANELS = 6  # of a picture: errors, then controls
SAME = ""  # limit of a criterion that each cell states


@checked
def side_by_side(
    reports: Mapping[str, Report], *, title: str = "Controllers side by side"
) -> "SideBySide":
    """Return reports under labels, to be shown, printed and saved together.

        both = mb.validation.side_by_side({"PD": first, "QP": second})
        both.save("both.html")

    Args:
        reports: label → what `validate` returned; of one robot, so that there is something to
            compare.
        title: heading.

    Raises:
        ProblemError: less than two reports, or more runs than there are colours.
    """
    return SideBySide(dict(reports), title)


@summarised
@dataclass(frozen=True)
class SideBySide:
    """Reports under labels; `side_by_side` makes one.

    Attributes:
        reports: by label.
        title: heading.

    Raises:
        ProblemError: less than two reports, or more runs than there are colours.
    """

    reports: Mapping[str, Report]
    title: str = "Controllers side by side"

    def __post_init__(self) -> None:
        require_fields(self)
        if len(self.reports) < 2:
            raise ProblemError(
                f"reports has {len(self.reports)} labels; expected at least two: "
                '{"a": report, "b": other}'
            )
        if len(self.runs) > len(COLORS):
            raise ProblemError(
                f"the reports have {len(self.runs)} runs; expected at most {len(COLORS)}, as many "
                "as there are colours"
            )

    def _summary(self) -> dict[str, object]:
        verdicts = {label: verdict_word(run.passed) for label, run in self.runs.items()}
        return {"title": self.title, "passed": self.passed, "runs": verdicts}

    @property
    def passed(self) -> bool | None:
        """Whether every criterion of every run is fulfilled; None where a run is not judged."""
        return passed(run.passed for run in self.runs.values())

    @cached_property
    def runs(self) -> dict[str, Run]:
        """All runs by label; with number and name behind it, where a report has several."""
        return {
            label if len(report.runs) == 1 else f"{label} {k + 1}: {run.name}": run
            for label, report in self.reports.items()
            for k, run in enumerate(report.runs)
        }

    @property
    def headings(self) -> tuple[str, ...]:
        """Of the columns of `rows`."""
        return ("criterion", *self.runs, "required")

    def rows(self) -> list[tuple[str, ...]]:
        """Return one row for each criterion: its text, what each run reached, and its limit."""
        names = dict.fromkeys(v.metric for run in self.runs.values() for v in run.verdicts)
        return [self._row(name) for name in names]

    def _row(self, name: str) -> tuple[str, ...]:
        verdicts = [_verdict(run, name) for run in self.runs.values()]
        limits = {limit_text(verdict) for verdict in verdicts if verdict is not None}
        common = limits.pop() if len(limits) == 1 else SAME
        cells = [_cell(verdict, stated=common == SAME) for verdict in verdicts]
        return metric_text(name), *cells, common

    def metric_rows(self) -> list[tuple[str, ...]]:
        """Return one row for each metric: its text, and its value in each run."""
        values = [{m.name: m.value for m in run.metrics} for run in self.runs.values()]
        return [
            (
                metric_text(name),
                *(value_text(name, each[name]) if name in each else "–" for each in values),
            )
            for name in dict.fromkeys(name for each in values for name in each)
        ]

    def to_dict(self) -> dict[str, Plain]:
        """Return everything as plain data that JSON can hold."""
        reports = {label: report.to_dict() for label, report in self.reports.items()}
        return plain_data({"title": self.title, "passed": self.passed, "reports": reports})

    def to_json(self) -> str:
        """Return the reports as JSON text."""
        return json_text(self.to_dict())

    def to_html(self) -> str:
        """Return one HTML page that refers to no other file.

        Raises:
            MissingExtraError: jinja2 or matplotlib is not installed.
        """
        shown, folded = overlays(self.runs)
        return page_template("side_by_side.html.j2", verdict_word=verdict_word).render(
            title=self.title,
            both=self,
            figures=plain_figures([each.content for each in shown], "shown"),
            folded=plain_figures([each.content for each in folded], "folded"),
            versions=package_versions(),
        )

    @checked
    def save(self, path: str | Path) -> Path:
        """Write the comparison; return the path.

        Args:
            path: `.html`, `.json`; `.png`, `.svg` or `.pdf` for the curves alone: the largest
                errors and controls.

        Raises:
            ProblemError: a file that cannot be written, or another suffix.
            MissingExtraError: a page needs jinja2 and matplotlib, a picture matplotlib.
        """
        if Path(path).suffix not in PICTURES:
            return save_page(path, "a comparison", self.to_json, self.to_html)
        save_figure(path, {each.title: each.curves for each in self._panels()})
        return Path(path)

    def _panels(self) -> list[Overlay]:
        """Return the curves of a picture: of errors, then of controls."""
        shown, _ = overlays(self.runs)
        controls = [each for each in shown if each.field == "u"]
        others = [each for each in shown if each.field != "u"]
        return [*others[: MOST_PANELS - len(controls[:2])], *controls][:MOST_PANELS]

    def table(self) -> "Table":
        """Return the criteria of all runs as a `rich` table.

        Raises:
            MissingExtraError: rich is not installed.
        """
        return side_by_side_table(self._headline, self.headings, self.rows())

    @property
    def _headline(self) -> str:
        return f"{self.title}: {verdict_word(self.passed, 'FAILED')}"

    def _repr_html_(self) -> str:
        table = html_rows(self._headline, self.headings, self.rows())
        shown, _ = overlays(self.runs)
        return table + (picture(shown[0].title, shown[0].draw) if shown else "")

    def __str__(self) -> str:
        rows = [self.headings, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([self._headline, *lines])


def _verdict(run: Run, name: str) -> Verdict | None:
    return next((verdict for verdict in run.verdicts if verdict.metric == name), None)


def _cell(verdict: Verdict | None, *, stated: bool) -> str:
    """Return what a run reached; its limit where runs have different ones, and a failure."""
    if verdict is None:
        return number_text(float("nan"))
    limit = f" ({limit_text(verdict)})" if stated else ""
    mark = {True: "", False: " FAILED", None: " not judged"}[verdict.passed]
    return f"{value_text(verdict.metric, verdict.value)}{limit}{mark}"
