"""The plots of a run, as inline SVG."""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.extras import require
from mbcasadi.validation.metrics import active_contacts, predicted_margin
from mbcasadi.validation.run import Run

Array = NDArray[np.float64]

COLORS = ("#2458a0", "#d2691e", "#2e8b57", "#8a4f9e", "#b5952a", "#c0392b", "#3d9db3", "#6b7280")
LIMIT = "#9b1c1c"
MOST_POINTS = 700  # of one line; more would only make the page heavy
MOST_LINES = 12  # of one plot
LEGEND_WIDTH = 78  # characters above one plot
LEGEND_HANDLE = 6  # characters that a line and its gap take
STYLE = {
    "svg.fonttype": "none",
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
class Plot:
    """One picture of the page: heading, one sentence that says how to read it, and SVG."""

    title: str
    caption: str
    svg: str


def plots(run: Run) -> list[Plot]:
    """Return the plots that this run has data for.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    pyplot_free = require("matplotlib.figure", "a plot")
    matplotlib = require("matplotlib", "a plot")
    drawn = []
    for i, (title, caption, draw) in enumerate(_content(run)):
        salt = f"{run.name}-{i}"
        with matplotlib.rc_context(STYLE | {"svg.hashsalt": salt}):
            figure = pyplot_free.Figure(figsize=(5.6, 3.0))
            figure.subplots_adjust(left=0.12, right=0.985, bottom=0.155, top=0.87)
            axes = figure.add_subplot()
            draw(axes)
            drawn.append(Plot(title, caption, _svg(figure)))
    return drawn


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    return re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)


Drawing = Callable[[Any], None]


def _content(run: Run) -> Iterator[tuple[str, str, Drawing]]:
    """Yield title, caption and drawing of each plot."""
    record = run.recording
    if run.tracked:
        yield "Targets and what became of them", "Target dashed, motion solid.", _targets(run)
        yield "Tracking error", "Target minus motion, all components.", _errors(run)
    yield "Controls", "Limits dotted; a control at its limit is clipped there.", _controls(run)
    if run.comparison is not None and record.equality_force.any():
        caption = "Ours dashed, MuJoCo's solid; the joints that carry most."
        yield "Constraint force of the loops", caption, _forces(run)
        caption = (
            "Worst gap of the joined points in MuJoCo; residual of our equations at its states."
        )
        yield "Closure of the loops", caption, _closure(run)
    if record.contact_names:
        yield "Normal forces", "What the floor does to each contact in MuJoCo.", _normals(run)
        caption = (
            "1 - |f_t| / (mu f_n): below zero is outside the cone. Controller's forces dashed."
        )
        yield "Friction-cone margin", caption, _margins(run)
    if run.times is not None:
        yield "Time of one tick", "The generated C with its QP solver and its check.", _times(run)


def _thin(t: Array) -> slice:
    return slice(None, None, max(1, -(-len(t) // MOST_POINTS)))


def _finish(axes: Any, ylabel: str, *, legend: bool) -> None:
    axes.set_xlabel("t / s")
    axes.set_ylabel(ylabel)
    axes.margins(x=0)
    if legend:
        _legend(axes)


def _legend(axes: Any) -> None:
    """Put the legend above the axes, in at most two rows that fit the width."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) < 2:
        return
    columns = max(1, LEGEND_WIDTH // (max(map(len, labels)) + LEGEND_HANDLE))
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.1}
    shown = slice(0, 2 * columns)
    style = {"handlelength": 1.2, "columnspacing": 1.0, "labelspacing": 0.2}
    axes.legend(handles[shown], labels[shown], ncols=columns, **place, **style)


def _unit_groups(run: Run) -> str:
    units = sorted({row.unit for row in run.tracked if row.unit})
    return " or ".join(units) if units else "SI units"


def _targets(run: Run) -> Drawing:
    def draw(axes: Any) -> None:
        record, cut = run.recording, _thin(run.recording.t)
        target, error = record.monitor["target"], record.monitor["error"]
        amplitude = np.array([row.amplitude for row in run.tracked])
        most = np.argsort(-amplitude, kind="stable")[: min(6, len(amplitude))]
        moving = [i for i in sorted(most) if amplitude[i] > 0] or list(most[:1])
        for n, i in enumerate(moving):
            color = COLORS[n % len(COLORS)]
            wanted, start = target[cut, i], target[0, i]
            axes.plot(record.t[cut], wanted - start, "--", color=color, linewidth=0.9)
            axes.plot(
                record.t[cut],
                wanted - start - error[cut, i],
                color=color,
                label=run.tracked[i].name,
            )
        _finish(axes, f"from the start / {_unit_groups(run)}", legend=len(moving) <= 6)

    return draw


def _errors(run: Run) -> Drawing:
    def draw(axes: Any) -> None:
        record, cut = run.recording, _thin(run.recording.t)
        error = record.monitor["error"]
        order = np.argsort(-np.abs(error).max(axis=0), kind="stable")
        for i in order[MOST_LINES:]:
            axes.plot(record.t[cut], error[cut, i], color="#d1d5db", linewidth=0.6)
        for n, i in enumerate(order[:MOST_LINES]):
            name = run.tracked[i].name if n < 6 else None
            axes.plot(record.t[cut], error[cut, i], color=COLORS[n % len(COLORS)], label=name)
        _finish(axes, f"error / {_unit_groups(run)}", legend=True)

    return draw


def _controls(run: Run) -> Drawing:
    def draw(axes: Any) -> None:
        record, controller = run.recording, run.controller
        cut = _thin(record.t)
        names = next((s.components for s in controller.outputs if s.name == "u"), ())
        units = next((s.units for s in controller.outputs if s.name == "u"), ())
        order = np.argsort(-np.abs(record.u).max(axis=0), kind="stable")
        for n, i in enumerate(order):
            name = names[i] if n < 6 and i < len(names) else None
            axes.plot(record.t[cut], record.u[cut, i], color=COLORS[n % len(COLORS)], label=name)
        limits = {float(x) for x in (*controller.u_min, *controller.u_max) if np.isfinite(x)}
        reach = 2 * float(np.abs(record.u).max(initial=0.0))
        for limit in limits:
            if abs(limit) <= reach:
                axes.axhline(limit, color=LIMIT, linestyle=":", linewidth=1.0)
        unit = next((u for u in units if u), "")
        _finish(axes, f"u / {unit}" if unit else "u", legend=bool(names))

    return draw


def _forces(run: Run) -> Drawing:
    def draw(axes: Any) -> None:
        comparison = run.comparison
        if comparison is None:
            return
        cut = _thin(comparison.t)
        order = np.argsort(-np.abs(comparison.force_theirs).max(axis=0), kind="stable")[:4]
        for n, i in enumerate(order):
            color = COLORS[n % len(COLORS)]
            axes.plot(
                comparison.t[cut], comparison.force_theirs[cut, i], color=color, label=f"dof {i}"
            )
            axes.plot(
                comparison.t[cut],
                comparison.force_ours[cut, i],
                "--",
                color="#111827",
                linewidth=0.8,
            )
        _finish(axes, "f_c / N or N m", legend=True)

    return draw


def _closure(run: Run) -> Drawing:
    def draw(axes: Any) -> None:
        record, cut = run.recording, _thin(run.recording.t)
        tiny = np.finfo(float).tiny
        axes.semilogy(
            record.t[cut], np.maximum(record.closure, tiny)[cut], label="MuJoCo's gap / m"
        )
        if run.comparison is not None:
            cut = _thin(run.comparison.t)
            axes.semilogy(
                run.comparison.t[cut],
                np.maximum(run.comparison.drift, tiny)[cut],
                "--",
                label="largest |phi| of ours",
            )
        largest = float(record.closure.max())
        if largest > 0:
            axes.set_ylim(largest * 1e-4, largest * 5)
        for verdict in run.verdicts:
            if verdict.metric == "closure.plant" and verdict.limit < largest * 5:
                axes.axhline(verdict.limit, color=LIMIT, linestyle=":", linewidth=1.0)
        _finish(axes, "m", legend=True)

    return draw


def _normals(run: Run) -> Drawing:
    def draw(axes: Any) -> None:
        record, cut = run.recording, _thin(run.recording.t)
        for n, name in enumerate(record.contact_names):
            color = COLORS[n % len(COLORS)]
            axes.plot(record.t[cut], record.contact_normal[cut, n], color=color, label=name)
        _finish(axes, "f_n / N", legend=len(record.contact_names) <= MOST_LINES)

    return draw


def _margins(run: Run) -> Drawing:
    def draw(axes: Any) -> None:
        record, cut = run.recording, _thin(run.recording.t)
        active = active_contacts(run.controller, record)
        mu = np.array([contact.friction for contact in run.controller.contacts])
        loaded = active & (record.contact_normal > 0)
        cone = np.where(loaded, mu * record.contact_normal, 1.0)
        margin = np.where(loaded, 1 - record.contact_tangential / cone, np.nan)
        for n, name in enumerate(record.contact_names):
            color = COLORS[n % len(COLORS)]
            axes.plot(record.t[cut], margin[cut, n], color=color, label=name)
        predicted = predicted_margin(run.controller, record)
        if predicted is not None:
            shown = np.where(active, predicted, np.nan)
            axes.plot(record.t[cut], shown[cut], "--", color="#111827", linewidth=0.6)
        axes.axhline(0.0, color=LIMIT, linestyle=":", linewidth=1.0)
        axes.set_ylim(-0.1, 1.02)
        _finish(axes, "margin", legend=len(record.contact_names) <= MOST_LINES)

    return draw


def _times(run: Run) -> Drawing:
    def draw(axes: Any) -> None:
        if run.times is None:
            return
        micro = 1e6 * run.times.seconds
        top = 1.5 * float(np.percentile(micro, 99))
        axes.hist(np.minimum(micro, top), bins=60, color=COLORS[0])
        for value, word in ((run.times.median, "median"), (run.times.p99, "99 %")):
            axes.axvline(1e6 * value, color=LIMIT, linestyle=":", linewidth=1.0)
            axes.annotate(
                f"{word} {1e6 * value:.3g} µs",
                (1e6 * value, 0.9 if word == "median" else 0.75),
                xycoords=("data", "axes fraction"),
                xytext=(4, 0),
                textcoords="offset points",
            )
        axes.set_xlabel("time of one tick / µs")
        axes.set_ylabel("ticks")

    return draw
