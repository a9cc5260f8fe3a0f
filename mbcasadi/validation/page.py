"""The report as one self-contained page."""

import base64
from typing import TYPE_CHECKING

from mbcasadi.codegen import TickTimes
from mbcasadi.validation import words
from mbcasadi.validation.extras import require
from mbcasadi.validation.plots import plots
from mbcasadi.validation.run import Run
from mbcasadi.validation.statuses import StatusRow

if TYPE_CHECKING:
    from mbcasadi.validation.report import Report


def page(report: "Report") -> str:
    """Return the HTML page: nothing in it refers to another file or to the network.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    from mbcasadi.validation.report import versions

    jinja2 = require("jinja2", "an HTML report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mbcasadi.validation", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(
        metric_words=words.metric_words,
        value_words=words.value_words,
        limit_words=words.limit_words,
        what_if_headings=words.what_if_headings,
        what_if_cells=words.what_if_cells,
        number=words.number,
        bound=words.bound,
        answers=_answers,
        timed=_timed,
        ticks=words.ticks,
        zip_rows=lambda sweep: zip(sweep.impedances, sweep.errors, strict=True),
    )
    runs = [
        {
            "run": run,
            "anchor": f"run-{k + 1}",
            "plots": plots(run),
            "frames": [
                (base64.b64encode(picture).decode("ascii"), f"{t:.2f} s")
                for picture, t in zip(run.frames, run.frame_times, strict=True)
            ],
        }
        for k, run in enumerate(report.runs)
    ]
    text: str = environment.get_template("report.html.j2").render(
        report=report, runs=runs, versions=versions()
    )
    return text


def _answers(run: Run) -> list[tuple[str, StatusRow]]:
    """Return the statuses that occurred, of the law and of an outer one, with what names it."""
    told = [("", row) for row in run.status_rows]
    if run.outer is not None:
        told += [(f"{run.outer.name}: ", row) for row in run.outer.status_rows]
    return told


def _timed(run: Run) -> list[tuple[str, TickTimes, float]]:
    """Return (name, times, period) of whole ticks and their phases, of an outer law too."""
    found = []
    if run.times is not None:
        period = run.controller.period
        found += [(name, times, period) for name, times in words.phases(run.times)]
    if run.outer is not None:
        above = words.phases(run.outer.times)
        found += [(f"{run.outer.name}: {name}", times, run.outer.period) for name, times in above]
    return found
