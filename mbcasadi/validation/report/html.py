"""The report as one self-contained page."""

import base64
from collections.abc import Mapping, Sequence

from mbcasadi.codegen import TickTimes
from mbcasadi.validation.metrics.status_metrics import StatusRow
from mbcasadi.validation.report import text
from mbcasadi.validation.report.extras import require
from mbcasadi.validation.report.figures import figures
from mbcasadi.validation.run.run import Run


def page(runs: Sequence[Run], title: str, versions: Mapping[str, str]) -> str:
    """Return the HTML page: nothing in it refers to another file or to the network.

    Args:
        runs: in the order of the page.
        title: heading.
        versions: name → version, for the footer.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    jinja2 = require("jinja2", "an HTML report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mbcasadi.validation.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(
        metric_words=text.metric_words,
        value_words=text.value_words,
        limit_words=text.limit_words,
        what_if_headings=text.what_if_headings,
        what_if_cells=text.what_if_cells,
        number=text.number,
        bound=text.bound,
        answers=_answers,
        timed=_timed,
        ticks=text.ticks,
        zip_rows=lambda sweep: zip(sweep.impedances, sweep.errors, strict=True),
    )
    items = [
        {
            "run": run,
            "anchor": f"run-{k + 1}",
            "plots": figures(run),
            "frames": [
                (base64.b64encode(picture).decode("ascii"), f"{t:.2f} s")
                for picture, t in zip(run.frames, run.frame_times, strict=True)
            ],
        }
        for k, run in enumerate(runs)
    ]
    passed = all(run.passed for run in runs)
    html: str = environment.get_template("report.html.j2").render(
        title=title, passed=passed, runs=items, versions=versions
    )
    return html


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
        found += [(name, times, period) for name, times in text.phases(run.times)]
    if run.outer is not None:
        above = text.phases(run.outer.times)
        found += [(f"{run.outer.name}: {name}", times, run.outer.period) for name, times in above]
    return found
