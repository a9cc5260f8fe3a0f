"""Functions that draw one plot of a run each, on given axes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.metrics import active_contacts, predicted_margin
from mbcasadi.validation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Draw: TypeAlias = "Callable[[Axes], None]"

COLORS = ("#2458a0", "#d2691e", "#2e8b57", "#8a4f9e", "#b5952a", "#c0392b", "#3d9db3", "#6b7280")
LIMIT = "#9b1c1c"
MOST_POINTS = 700  # of one line; more would only make the page heavy
MOST_LINES = 12  # of one plot
MOST_TARGETS = 6  # of one plot, two lines each
LEGEND_WIDTH = 78  # characters above one plot
LEGEND_HANDLE = 6  # characters that a line and its gap take


def thin(t: Array) -> slice:
    """Return a slice that leaves at most `MOST_POINTS` points."""
    return slice(None, None, max(1, -(-len(t) // MOST_POINTS)))


def label_axes(axes: "Axes", ylabel: str, *, legend: bool) -> None:
    """Label the axes, and put the legend above them."""
    axes.set_xlabel("t / s")
    axes.set_ylabel(ylabel)
    axes.margins(x=0)
    if legend:
        _legend(axes)


def _legend(axes: "Axes") -> None:
    """Put the legend above the axes, in at most two rows that fit the width."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) < 2:
        return
    columns = max(1, LEGEND_WIDTH // (max(map(len, labels)) + LEGEND_HANDLE))
    shown = slice(0, 2 * columns)
    axes.legend(
        handles[shown],
        labels[shown],
        ncols=columns,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.1,
        handlelength=1.2,
        columnspacing=1.0,
        labelspacing=0.2,
    )


def moving_components(run: Run, unit: str) -> list[int]:
    """Return the components in this unit whose target moves, those that move most first."""
    rows = [i for i, row in enumerate(run.tracking) if row.unit == unit]
    moving = [i for i in rows if run.tracking[i].moves]
    return sorted(moving, key=lambda i: -run.tracking[i].amplitude)


def targets(run: Run, unit: str) -> Draw:
    """Draw targets and motion of the components that move most, from their start."""

    def draw(axes: "Axes") -> None:
        record, kept = run.recording, thin(run.recording.t)
        target, error = record.monitor["target"], record.monitor["error"]
        for n, i in enumerate(sorted(moving_components(run, unit)[:MOST_TARGETS])):
            color, displacement = COLORS[n % len(COLORS)], target[kept, i] - target[0, i]
            axes.plot(record.t[kept], displacement, "--", color=color, linewidth=0.9)
            motion = displacement - error[kept, i]
            axes.plot(record.t[kept], motion, color=color, label=run.tracking[i].name)
        label_axes(axes, f"from the start / {unit or 'SI'}", legend=True)

    return draw


def errors(run: Run, unit: str) -> Draw:
    """Draw the error of each component."""

    def draw(axes: "Axes") -> None:
        record, kept = run.recording, thin(run.recording.t)
        error = record.monitor["error"]
        moving = moving_components(run, unit)
        still = [i for i, row in enumerate(run.tracking) if row.unit == unit and i not in moving]
        shown = sorted(moving[:MOST_LINES]) or still[:MOST_LINES]
        for i in still if moving else ():
            axes.plot(record.t[kept], error[kept, i], color="#d1d5db", linewidth=0.6)
        for n, i in enumerate(shown):
            color, name = COLORS[n % len(COLORS)], run.tracking[i].name
            axes.plot(record.t[kept], error[kept, i], color=color, label=name)
        if moving:  # the grey lines may exceed the axes
            reach = 1.3 * float(np.abs(error[:, shown]).max())
            axes.set_ylim(-reach or -1.0, reach or 1.0)
        label_axes(axes, f"error / {unit or 'SI'}", legend=True)

    return draw


def controls(run: Run) -> Draw:
    """Draw the controls and their limits."""

    def draw(axes: "Axes") -> None:
        record, controller = run.recording, run.controller
        kept = thin(record.t)
        names = next((s.components for s in controller.outputs if s.name == "u"), ())
        units = next((s.units for s in controller.outputs if s.name == "u"), ())
        order = np.argsort(-np.abs(record.u).max(axis=0), kind="stable")
        for n, i in enumerate(order):
            name = names[i] if n < 6 and i < len(names) else None
            axes.plot(record.t[kept], record.u[kept, i], color=COLORS[n % len(COLORS)], label=name)
        limits = {float(x) for x in (*controller.u_min, *controller.u_max) if np.isfinite(x)}
        reach = 2 * float(np.abs(record.u).max(initial=0.0))
        for limit in limits:
            if abs(limit) <= reach:
                axes.axhline(limit, color=LIMIT, linestyle=":", linewidth=1.0)
        unit = next((u for u in units if u), "")
        label_axes(axes, f"u / {unit}" if unit else "u", legend=bool(names))

    return draw


def forces(run: Run) -> Draw:
    """Draw our constraint force and MuJoCo's."""

    def draw(axes: "Axes") -> None:
        comparison = run.comparison
        if comparison is None:
            return
        kept = thin(comparison.t)
        names = next((s.components for s in run.controller.inputs if s.name == "v"), ())
        order = np.argsort(-np.abs(comparison.mujoco_force).max(axis=0), kind="stable")[:4]
        for n, i in enumerate(order):
            color, label = COLORS[n % len(COLORS)], names[i] if i < len(names) else f"dof {i}"
            axes.plot(
                comparison.t[kept], comparison.mujoco_force[kept, i], color=color, label=label
            )
            axes.plot(
                comparison.t[kept],
                comparison.force[kept, i],
                "--",
                color="#111827",
                linewidth=0.8,
            )
        label_axes(axes, "f_c / N or N m", legend=True)

    return draw


def closure(run: Run) -> Draw:
    """Draw the gaps of the loops."""

    def draw(axes: "Axes") -> None:
        record, kept = run.recording, thin(run.recording.t)
        tiny = np.finfo(float).tiny
        axes.semilogy(
            record.t[kept], np.maximum(record.closure, tiny)[kept], label="MuJoCo's gap / m"
        )
        if run.comparison is not None:
            kept = thin(run.comparison.t)
            axes.semilogy(
                run.comparison.t[kept],
                np.maximum(run.comparison.drift, tiny)[kept],
                "--",
                label="our largest |phi|",
            )
        largest = float(record.closure.max())
        if largest > 0:
            axes.set_ylim(largest * 1e-4, largest * 5)
        extent = largest / run.metric("closure.share") if largest > 0 else 1.0
        units = {"closure.plant": 1.0, "closure.share": extent}
        for verdict in run.verdicts:
            limit = verdict.limit * units.get(verdict.metric, np.inf)
            if limit < largest * 5:
                axes.axhline(limit, color=LIMIT, linestyle=":", linewidth=1.0)
        label_axes(axes, "m", legend=True)

    return draw


def normals(run: Run) -> Draw:
    """Draw the normal force of each contact, and dashed the planned one."""

    def draw(axes: "Axes") -> None:
        record, kept = run.recording, thin(run.recording.t)
        for n, name in enumerate(record.contact_names):
            color = COLORS[n % len(COLORS)]
            axes.plot(record.t[kept], record.contact_normal[kept, n], color=color, label=name)
            forces = run.contact_forces
            if forces is not None:
                some = thin(forces.t)
                planned = np.where(forces.active[some, n], forces.planned[some, n, 0], np.nan)
                axes.plot(forces.t[some], planned, "--", color="#111827", linewidth=0.8)
        label_axes(axes, "f_n / N", legend=len(record.contact_names) <= MOST_LINES)

    return draw


def margins(run: Run) -> Draw:
    """Draw the friction-cone margin of each contact."""

    def draw(axes: "Axes") -> None:
        record, kept = run.recording, thin(run.recording.t)
        active = active_contacts(run.controller, record)
        mu = np.array([contact.friction for contact in run.controller.contacts])
        loaded = active & (record.contact_normal > 0)
        cone = np.where(loaded, mu * record.contact_normal, 1.0)
        margin = np.where(loaded, 1 - record.contact_tangential / cone, np.nan)
        for n, name in enumerate(record.contact_names):
            color = COLORS[n % len(COLORS)]
            axes.plot(record.t[kept], margin[kept, n], color=color, label=name)
        predicted = predicted_margin(run.controller, record)
        if predicted is not None:
            shown = np.where(active, predicted, np.nan)
            axes.plot(record.t[kept], shown[kept], "--", color="#111827", linewidth=0.6)
        axes.axhline(0.0, color=LIMIT, linestyle=":", linewidth=1.0)
        axes.set_ylim(-0.1, 1.02)
        label_axes(axes, "margin", legend=len(record.contact_names) <= MOST_LINES)

    return draw


def times(run: Run) -> Draw:
    """Draw the distribution of tick times."""

    def draw(axes: "Axes") -> None:
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
