"""A replayed log as one self-contained HTML page."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import LogReplay, TickEvent
from mbcasadi.inline_svg import COLORS, thin_lines
from mbcasadi.validation.report.figures import plain_figures
from mbcasadi.validation.report.pages import json_text, page_template, save_page
from mbcasadi.validation.report.plots import Draw, draw_largest, label_axes
from mbcasadi.validation.versions import package_versions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 20
"""Changes of the events that are listed."""


def save_replay(result: LogReplay, path: Path, title: str) -> None:
    """Write the result as a page (.html) or as data (.json)."""
    save_page(
        path, "a replay", lambda: json_text(result.to_dict()), lambda: replay_page(result, title)
    )


def replay_page(result: LogReplay, title: str) -> str:
    """Return the HTML page: nothing in it refers to another file or to the network.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    changes = list(event_changes(result))
    return page_template("replay.html.j2").render(
        title=title,
        result=result,
        counts=result.log.event_counts(),
        changes=changes[:MOST_ROWS],
        more=max(0, len(changes) - MOST_ROWS),
        figures=plain_figures(_content(result), "replay"),
        versions=package_versions(),
    )


def event_changes(result: LogReplay) -> Iterator[tuple[int, float, str, str]]:
    """Yield tick, time, events and fault wherever the events differ from those before."""
    log, before = result.log, 0
    for tick, bits, fault in zip(log.ticks, log.events, log.faults, strict=True):
        if bits != before:
            yield int(tick), float(tick * log.period), str(TickEvent(int(bits))), fault
        before = bits


def _content(result: LogReplay) -> Iterator[tuple[str, str, Draw]]:
    """Yield title, caption and drawing of each plot: one for each signal and unit."""
    log = result.log
    if not log.ticks.size:
        return
    yield from _signal(result, "Control", "As it was logged.", "u", log.outputs["u"])
    yield "Events", "One row for each kind.", partial(_events, result=result)
    for name, values in log.inputs.items():
        if values.size and np.isfinite(values).any():
            caption = "As it was logged, before any check."
            yield from _signal(result, f"Input {name}", caption, name, values)
    if not result.is_equal.all():
        difference = result.outputs["u"] - log.outputs["u"]
        caption = "Computed now minus logged."
        yield from _signal(result, "Difference of the control", caption, "u", difference)


def _signal(
    result: LogReplay, title: str, caption: str, name: str, values: NDArray[np.float64]
) -> Iterator[tuple[str, str, Draw]]:
    """Yield the plots of a signal's columns, those of one unit together."""
    nothing = (("", ""),) * values.shape[1]
    columns = result.log.columns.get(name) or nothing
    for unit in dict.fromkeys(unit for _, unit in columns):
        rows = [k for k, column in enumerate(columns) if column[1] == unit]
        labels = [columns[k][0] or f"{name}[{k}]" for k in rows]
        label = f"{name} / {unit}" if unit else name
        draw = partial(_lines, result=result, values=values[:, rows], names=labels, label=label)
        yield f"{title} ({unit})" if unit else title, caption, draw


def _lines(
    axes: "Axes", result: LogReplay, values: NDArray[np.float64], names: list[str], label: str
) -> None:
    """Draw columns, those that change most in colour."""
    times = (result.log.ticks * result.log.period).astype(np.float64)
    spread = np.nanmax(values, axis=0, initial=-np.inf) - np.nanmin(values, axis=0, initial=np.inf)
    size = np.where(np.isfinite(spread), spread, 0.0)
    draw_largest(axes, times, values, names, size)
    thin_lines(axes)
    label_axes(axes, label)


def _events(axes: "Axes", result: LogReplay) -> None:
    log = result.log
    names = list(log.event_counts()) or ["none"]
    times = log.ticks * log.period
    for row, name in enumerate(names):
        at = times[log.events & int(getattr(TickEvent, name, 0)) != 0]
        axes.plot(at, np.full(at.size, row), "|", color=COLORS[0])
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(times[0], times[-1] + log.period)
    label_axes(axes, "")
