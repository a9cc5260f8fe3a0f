"""Runs as one self-contained HTML page."""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mbcasadi.codegen import TickTimes
from mbcasadi.validation.metrics import Softness, passed, text
from mbcasadi.validation.metrics.text import metric_text
from mbcasadi.validation.report.figures import Figure, figures
from mbcasadi.validation.report.findings import all_status_rows
from mbcasadi.validation.report.pages import page_template
from mbcasadi.validation.run import Run


class _Section(NamedTuple):
    """One run on the page: its anchor, plots, and (PNG as base64, time) of each frame."""

    run: Run
    anchor: str
    figures: list[Figure]
    frames: list[tuple[str, str]]
    plan_frames: list[tuple[str, str]]


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
        number_text=text.number_text,
        bound_text=text.bound_text,
        tick_count=text.tick_count,
        plan_error_text=text.plan_error_text,
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
    key = f"run-{index + 1}"
    frames = _images(run.frames, run.frame_times)
    planned = _images(run.plan_frames, run.plan_times)
    return _Section(run, key, figures(run, key), frames, planned)


def _images(frames: Sequence[bytes], times: Sequence[float]) -> list[tuple[str, str]]:
    """Return pictures as text, with their times."""
    pairs = zip(frames, times, strict=True)
    return [(base64.b64encode(png).decode("ascii"), f"{t:.2f} s") for png, t in pairs]


def _sweep_rows(sweep: Softness) -> Iterator[tuple[float, float]]:
    return zip(sweep.impedances, sweep.errors, strict=True)


def _tick_times(run: Run) -> list[tuple[str, TickTimes, float]]:
    """Return (name, times, period) of whole ticks and their phases, of an outer law too."""
    rows = []
    if run.times is not None:
        period = run.controller.period
        rows += [(name, times, period) for name, times in text.tick_phases(run.times)]
    if run.outer is not None and run.outer.times is not None:
        outer = run.outer
        phases = text.tick_phases(run.outer.times)
        rows += [(f"{outer.name}: {name}", times, outer.period) for name, times in phases]
    return rows


GLOSSARY = {
    "safe output": "what a controller commands where it has no solution; in controllers of "
    "this package the last solved command for 10 ms, then each actuator holds",
    "of scale": "RMS in the last quarter of the run over 1 rad for angles, the extent of the model "
    "for lengths, its weight for forces; the deviation at the start is added to that scale",
    "self-check": "the controller puts its solution into its own equations and conditions; what "
    "remains is the residual, zero but for rounding and the solver's tolerance",
}
"""A word of the tables → what it means."""


def explained(metrics: Iterable[str]) -> list[tuple[str, str]]:
    """Return the words of the glossary that the texts of metrics have, with their meaning."""
    together = "\n".join(map(metric_text, metrics))
    return [(word, meaning) for word, meaning in GLOSSARY.items() if word in together]
