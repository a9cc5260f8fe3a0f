"""The figures of a run, as inline SVG."""

import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.report import plots, prediction_plots
from mbcasadi.validation.report.pages import optional
from mbcasadi.validation.report.plots import Draw, joint_content
from mbcasadi.validation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

LEFT, RIGHT, BOTTOM, TOP = 0.145, 0.985, 0.16, 0.945  # of the axes, as shares of the figure
BELOW_LEGEND, WITHOUT_LEGEND = 0.87, 0.97  # tops of axes
STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # names of a model are no formulas
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9ca3af",
    "axes.labelcolor": "#374151",
    "axes.grid": True,
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.7,
    "xtick.color": "#4b5563",
    "ytick.color": "#4b5563",
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


@dataclass(frozen=True)
class Figure:
    """One figure of the page: heading, one sentence that says how to read it, and SVG.

    `axes` is JSON by which the page reads values from the SVG; `joint` figures come last, folded.
    """

    title: str
    caption: str
    svg: str
    axes: str = ""
    joint: bool = False


def figures(run: Run, prefix: str = "run") -> list[Figure]:
    """Return the figures that this run has data for.

    Args:
        run: of a report.
        prefix: of the ids of curves, unique on the page.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    result = []
    overview = list(_content(run))
    for i, (title, caption, draw) in enumerate([*overview, *joint_content(run.recording)]):
        with _figure(f"{run.name}-{i}") as figure:
            axes = figure.add_subplot()
            draw(axes)
            thin_lines(axes)
            top = BELOW_LEGEND if axes.get_legend() else WITHOUT_LEGEND
            figure.subplots_adjust(left=LEFT, right=RIGHT, bottom=BOTTOM, top=top)
            marks = mark_lines(axes, f"{prefix}-{i}")
            svg = svg_text(figure)
        result.append(Figure(title, caption, svg, marks, i >= len(overview)))
    return result


def plain_figures(
    content: Iterable[tuple[str, str, Draw]], prefix: str, left: float = LEFT
) -> list[Figure]:
    """Return figures without values to hover over.

    Args:
        content: title, caption and drawing of each.
        prefix: of the ids within their SVG, unique on the page.
        left: of the axes, as a share of the figure.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    result = []
    for i, (title, caption, draw) in enumerate(content):
        with _figure(f"{prefix}-{i}") as figure:
            draw(axes := figure.add_subplot())
            top = BELOW_LEGEND if axes.get_legend() else TOP
            figure.subplots_adjust(left=left, right=RIGHT, bottom=BOTTOM, top=top)
            result.append(Figure(title, caption, svg_text(figure)))
    return result


@contextmanager
def _figure(salt: str) -> Iterator["MatplotlibFigure"]:
    """Yield a new figure in our style; `salt` makes the ids of its SVG."""
    style, module = (optional(f"matplotlib.{name}", "a plot") for name in ("style", "figure"))
    with style.context(STYLE | {"svg.hashsalt": salt}):
        yield module.Figure(figsize=(5.6, 3.0))


def svg_text(figure: "MatplotlibFigure") -> str:
    """Return a figure as the text of an SVG element."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub(r'="[^"]*"', _to_hundredths, text)  # coordinates; the labels stay


def _to_hundredths(attribute: re.Match[str]) -> str:
    """Return an attribute with its numbers truncated to hundredths of a point."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", attribute[0])


def _content(run: Run) -> Iterator[tuple[str, str, Draw]]:
    """Yield title, caption and drawing of each plot."""
    record = run.recording
    for unit in dict.fromkeys(row.unit for row in run.tracking):
        suffix = f" ({unit})" if unit else ""
        if plots.moving_components(run, unit):
            caption = "Target dashed, motion solid."
            yield f"Targets and motion{suffix}", caption, partial(plots.targets, run=run, unit=unit)
        caption = "Target minus motion; components with a constant target are grey."
        yield f"Tracking error{suffix}", caption, partial(plots.errors, run=run, unit=unit)
    caption = "Limits dotted; a control is clipped at its limit."
    yield "Controls", caption, partial(plots.controls, run=run)
    yield from _plan_content(run)
    yield from _estimate_content(run)
    if run.comparison is not None and record.equality_force.any():
        caption = "Our equations dashed, MuJoCo solid; the joints with the largest force."
        yield "Constraint force of the loops", caption, partial(plots.forces, run=run)
        caption = "Worst gap in MuJoCo, and the residual of our equations at the same states."
        yield "Closure of the loops", caption, partial(plots.closure, run=run)
    if record.contact_names:
        caption = "Force of the floor on each contact in MuJoCo; dashed: planned."
        yield "Normal forces", caption, partial(plots.normals, run=run)
        caption = (
            "1 - |f_t| / (mu f_n), 0 where it slides, with the friction of the plant; dashed: of "
            "the controller's own forces, with the controller's."
        )
        yield "Friction-cone margin", caption, partial(plots.margins, run=run)
    if run.times is not None:
        caption = "The generated C with its QP solver and its check."
        yield "Time of one tick", caption, partial(plots.times, run=run)


def _estimate_content(run: Run) -> Iterator[tuple[str, str, Draw]]:
    """Yield the plots of an estimator's errors."""
    columns = run.recording.columns.get("monitor.estimate_error")
    if columns is None:
        return
    caption = "Error of the estimate solid, three standard deviations dotted."
    groups = dict.fromkeys(name.rpartition(".")[0] for name in columns.names)
    for group in groups:
        rows = [i for i, name in enumerate(columns.names) if name.rpartition(".")[0] == group]
        draw = partial(plots.estimate_errors, run=run, rows=rows)
        yield f"Estimated {group or 'state'}", caption, draw
    caption = "Distance of each measurement from what was expected, in standard deviations."
    yield "Innovations", caption, partial(plots.innovations, run=run)
    caption = (
        "Squared error of the estimate by its covariance, per direction: about 1 where the "
        "covariance is right; dashed: the mean."
    )
    yield "Consistency of the estimate", caption, partial(plots.consistency, run=run)


def _plan_content(run: Run) -> Iterator[tuple[str, str, Draw]]:
    """Yield the plots of the plans of the controller, and of the law above it."""
    for plans in prediction_plots.drawn_plans(run):
        for unit in prediction_plots.planned_units(plans):
            suffix = f" ({unit})" if unit else ""
            caption = "What happened solid; some of the plans dashed, from the dot on."
            draw = partial(prediction_plots.states, plans=plans, unit=unit)
            yield f"Plans and motion{suffix}", caption, draw
    if run.predictions is None:
        return
    caption = "What acted solid; some of the plans dashed, limits dotted."
    yield "Planned controls", caption, partial(prediction_plots.controls, run=run)


Array = NDArray[np.float64]

MOST_POINTS = 700  # of one line; more would only make the page heavy


def thin_lines(axes: "Axes", most: int = MOST_POINTS) -> None:
    """Leave at most about `most` points of each line, its extremes among them."""
    for line in axes.get_lines():
        x, y = (np.asarray(data, dtype=float) for data in line.get_data())
        if len(x) > most:
            kept = extremes(y, most // 2)
            line.set_data(x[kept], y[kept])


def extremes(y: Array, buckets: int) -> NDArray[np.int64]:
    """Return sorted indices of the ends, and of the least and largest value of each bucket.

    A bucket with NaN keeps one of them, where the line has a gap.
    """
    kept = {0, len(y) - 1}
    for part in np.array_split(np.arange(len(y)), buckets):
        values = y[part]
        missing = np.isnan(values)
        if missing.any():
            kept.add(int(part[np.argmax(missing)]))
        if not missing.all():
            kept |= {int(part[np.nanargmin(values)]), int(part[np.nanargmax(values)])}
    return np.array(sorted(kept), dtype=np.int64)


def mark_lines(axes: "Axes", prefix: str) -> str:
    """Give each named line an id in the SVG; return JSON by which a page reads values from it.

    Args:
        axes: one plot, complete.
        prefix: of the ids, unique on the page.
    """
    figure = axes.figure
    width, height = 72 * figure.get_size_inches()  # type: ignore[union-attr]
    box = axes.get_position()
    names = {}
    for n, line in enumerate(axes.get_lines()):
        label = str(line.get_label())
        if not label.startswith("_"):
            line.set_gid(f"{prefix}-{n}")
            names[f"{prefix}-{n}"] = label
    return json.dumps(
        {
            "box": [box.x0 * width, box.x1 * width, (1 - box.y1) * height, (1 - box.y0) * height],
            "x": list(axes.get_xlim()),
            "y": list(axes.get_ylim()),
            "log": axes.get_yscale() == "log",
            "names": names,
        }
    )
