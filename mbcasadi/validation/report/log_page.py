"""A robot's log and what an estimator makes of it, as one self-contained HTML page."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbcasadi.inline_svg import COLORS, thin_lines
from mbcasadi.validation.report.estimated_log import EstimatedLog, Part
from mbcasadi.validation.report.figures import plain_figures
from mbcasadi.validation.report.pages import json_text, page_template, save_page
from mbcasadi.validation.report.plots import MOST_LINES, Draw, label_axes
from mbcasadi.validation.versions import package_versions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
BOUND = 3.0  # standard deviations


def save_log_report(result: EstimatedLog, path: Path) -> None:
    """Write the report as a page (.html) or as data (.json).

    Raises:
        ProblemError: another suffix, or a file that cannot be written.
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    save_page(path, "a log", lambda: json_text(result.to_dict()), lambda: log_page(result))


def log_page(result: EstimatedLog) -> str:
    """Return the HTML page: nothing in it refers to another file or to the network.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    return page_template("log.html.j2").render(
        title=result.estimator.name,
        result=result,
        figures=plain_figures(_content(result), "log"),
        versions=package_versions(),
    )


def _content(result: EstimatedLog) -> Iterator[tuple[str, str, Draw]]:
    """Yield title, caption and drawing of each plot."""
    parts, nv = result.parts, result.said.v.shape[1]
    deviation = parts["deviation"]
    own = {row: k for k, row in enumerate(result.estimator.covered)}
    bounds = {row - nv: deviation.values[:, k] for row, k in own.items() if row >= nv}
    lines = partial(_lines, t=result.said.t)
    caption = "Of the components that change most; dotted: three standard deviations."
    yield "Estimated rates", caption, partial(lines, part=parts["v"], bounds=bounds)
    q = parts["q"]
    moved = Part(q.values - q.values[0], q.names)
    yield "Estimated pose", "From its start.", partial(lines, part=moved)
    groups = [name.rpartition(".")[0] for name in deviation.names]
    for group in dict.fromkeys(groups):
        rows = [k for k, name in enumerate(groups) if name == group]
        part = Part(deviation.values[:, rows], tuple(deviation.names[k] for k in rows))
        title = f"Standard deviations of {group or 'the state'}"
        yield title, "As the estimator says.", partial(lines, part=part)
    if "residual" in parts:
        caption = "Distances of samples from what was expected, in standard deviations."
        yield "Innovations", caption, partial(lines, part=parts["residual"])
    caption = "; ".join(f"{k}: {text}" for k, text in enumerate(result.estimator.statuses))
    yield "Status", f"{caption}.", partial(lines, part=Part(parts["status"].values, ("status",)))


def _lines(axes: "Axes", t: Array, part: Part, bounds: Mapping[int, Array] | None = None) -> None:
    """Draw the columns that change most, some of them between bounds, (n,) deviations each."""
    most = np.argsort(-np.ptp(part.values, axis=0), kind="stable")[:MOST_LINES]
    for n, k in enumerate(sorted(most)):
        color, line = COLORS[n % len(COLORS)], part.values[:, k]
        axes.plot(t, line, color=color, label=part.names[k])
        if bounds is not None and int(k) in bounds:
            for sign in (-BOUND, BOUND):
                axes.plot(t, line + sign * bounds[int(k)], ":", color=color, linewidth=0.7)
    thin_lines(axes)
    label_axes(axes, "SI")
