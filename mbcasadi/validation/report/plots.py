"""What is drawn in each plot of a run."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.metrics.contact_metrics import active_contacts, predicted_margin
from mbcasadi.validation.metrics.metrics import SMALLEST_AMPLITUDE
from mbcasadi.validation.run.run import Run

Array = NDArray[np.float64]
Drawing = Callable[[Any], None]

COLORS = ("#2458a0", "#d2691e", "#2e8b57", "#8a4f9e", "#b5952a", "#c0392b", "#3d9db3", "#6b7280")
LIMIT = "#9b1c1c"
MOST_POINTS = 700  # of one line; more would only make the page heavy
MOST_LINES = 12  # of one plot
MOST_TARGETS = 6  # of one plot, two lines each
LEGEND_WIDTH = 78  # characters above one plot
LEGEND_HANDLE = 6  # characters that a line and its gap take


def _thin(t: Array) -> slice:
    return slice(None, None, max(1, -(-len(t) // MOST_POINTS)))


def finish(axes: Any, ylabel: str, *, legend: bool) -> None:
    """Name the axes, and put the legend above them."""
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


def moving_components(run: Run, unit: str) -> list[int]:
    """Return the components in this unit whose target moves, those that move most first."""
    rows = [i for i, row in enumerate(run.tracked) if row.unit == unit]
    moving = [i for i in rows if run.tracked[i].amplitude > SMALLEST_AMPLITUDE]
    return sorted(moving, key=lambda i: -run.tracked[i].amplitude)


def targets(run: Run, unit: str) -> Drawing:
    """Draw where the tasks should go, and where they went, from their start."""

    def draw(axes: Any) -> None:
        record, cut = run.recording, _thin(run.recording.t)
        target, error = record.monitor["target"], record.monitor["error"]
        for n, i in enumerate(sorted(moving_components(run, unit)[:MOST_TARGETS])):
            color, wanted, start = COLORS[n % len(COLORS)], target[cut, i], target[0, i]
            axes.plot(record.t[cut], wanted - start, "--", color=color, linewidth=0.9)
            moved = wanted - start - error[cut, i]
            axes.plot(record.t[cut], moved, color=color, label=run.tracked[i].name)
        finish(axes, f"from the start / {unit or 'SI'}", legend=True)

    return draw


def errors(run: Run, unit: str) -> Drawing:
    """Draw the error of each component."""

    def draw(axes: Any) -> None:
        record, cut = run.recording, _thin(run.recording.t)
        error = record.monitor["error"]
        moving = moving_components(run, unit)
        still = [i for i, row in enumerate(run.tracked) if row.unit == unit and i not in moving]
        shown = sorted(moving[:MOST_LINES]) or still[:MOST_LINES]
        for i in still if moving else ():
            axes.plot(record.t[cut], error[cut, i], color="#d1d5db", linewidth=0.6)
        for n, i in enumerate(shown):
            color, name = COLORS[n % len(COLORS)], run.tracked[i].name
            axes.plot(record.t[cut], error[cut, i], color=color, label=name)
        if moving:  # the grey lines may leave the picture
            reach = 1.3 * float(np.abs(error[:, shown]).max())
            axes.set_ylim(-reach or -1.0, reach or 1.0)
        finish(axes, f"error / {unit or 'SI'}", legend=True)

    return draw


def controls(run: Run) -> Drawing:
    """Draw the controls and their limits."""

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
        finish(axes, f"u / {unit}" if unit else "u", legend=bool(names))

    return draw


def forces(run: Run) -> Drawing:
    """Draw our constraint force beside MuJoCo's."""

    def draw(axes: Any) -> None:
        comparison = run.comparison
        if comparison is None:
            return
        cut = _thin(comparison.t)
        names = next((s.components for s in run.controller.inputs if s.name == "v"), ())
        order = np.argsort(-np.abs(comparison.force_theirs).max(axis=0), kind="stable")[:4]
        for n, i in enumerate(order):
            color, label = COLORS[n % len(COLORS)], names[i] if i < len(names) else f"dof {i}"
            axes.plot(comparison.t[cut], comparison.force_theirs[cut, i], color=color, label=label)
            axes.plot(
                comparison.t[cut],
                comparison.force_ours[cut, i],
                "--",
                color="#111827",
                linewidth=0.8,
            )
        finish(axes, "f_c / N or N m", legend=True)

    return draw


def closure(run: Run) -> Drawing:
    """Draw how far the loops are open."""

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
        finish(axes, "m", legend=True)

    return draw


def normals(run: Run) -> Drawing:
    """Draw the normal force of each contact."""

    def draw(axes: Any) -> None:
        record, cut = run.recording, _thin(run.recording.t)
        for n, name in enumerate(record.contact_names):
            color = COLORS[n % len(COLORS)]
            axes.plot(record.t[cut], record.contact_normal[cut, n], color=color, label=name)
        finish(axes, "f_n / N", legend=len(record.contact_names) <= MOST_LINES)

    return draw


def margins(run: Run) -> Drawing:
    """Draw the friction-cone margin of each contact."""

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
        finish(axes, "margin", legend=len(record.contact_names) <= MOST_LINES)

    return draw


def times(run: Run) -> Drawing:
    """Draw the distribution of tick times."""

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
