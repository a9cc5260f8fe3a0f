"""Runs as one self-contained HTML page."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mbcasadi.codegen import TickTimes
from mbcasadi.validation.metrics import Softness, passed
from mbcasadi.validation.report import text
from mbcasadi.validation.report.figures import Figure, figures
from mbcasadi.validation.report.findings import all_status_rows
from mbcasadi.validation.report.glossary import explained
from mbcasadi.validation.report.page_template import page_template
from mbcasadi.validation.report.why import reasons
from mbcasadi.validation.run import Run


class _Section(NamedTuple):
    """One run on the page: its anchor, plots, and (PNG as base64, time) of each frame."""

    run: Run
    anchor: str
    figures: list[Figure]
    frames: list[tuple[str, str]]


def page(runs: Sequence[Run], title: str, versions: Mapping[str, str]) -> str:
    """Return the HTML page: nothing in it refers to another file or to the network.

    Args:
        runs: in the order of the page.
        title: heading.
        versions: name → version, for the footer.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    template = page_template(
        "report.html.j2",
        metric_text=text.metric_text,
        value_text=text.value_text,
        limit_text=text.limit_text,
        reasons=reasons,
        what_if_headings=text.what_if_headings,
        what_if_cells=text.what_if_cells,
        number_text=text.number_text,
        bound_text=text.bound_text,
        tick_count=text.tick_count,
        all_status_rows=all_status_rows,
        explained=explained,
        verdict_word=text.verdict_word,
        tick_times=_tick_times,
        sweep_rows=_sweep_rows,
    )
    return template.render(
        title=title,
        passed=passed(run.passed for run in runs),
        sections=[_section(run, k) for k, run in enumerate(runs)],
        judged=[verdict.metric for run in runs for verdict in run.verdicts],
        versions=versions,
    )


def _section(run: Run, index: int) -> _Section:
    frames = [
        (base64.b64encode(png).decode("ascii"), f"{t:.2f} s")
        for png, t in zip(run.frames, run.frame_times, strict=True)
    ]
    return _Section(run, f"run-{index + 1}", figures(run, f"run-{index + 1}"), frames)


def _sweep_rows(sweep: Softness) -> Iterator[tuple[float, float]]:
    return zip(sweep.impedances, sweep.errors, strict=True)


def _tick_times(run: Run) -> list[tuple[str, TickTimes, float]]:
    """Return (name, times, period) of whole ticks and their phases, of an outer law too."""
    rows = []
    if run.times is not None:
        period = run.controller.period
        rows += [(name, times, period) for name, times in text.tick_phases(run.times)]
    if run.outer is not None:
        outer = run.outer
        phases = text.tick_phases(outer.times)
        rows += [(f"{outer.name}: {name}", times, outer.period) for name, times in phases]
    return rows
