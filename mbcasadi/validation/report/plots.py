"""Functions that draw one plot of a run each, on given axes."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mbcasadi.inline_svg import COLORS, HEIGHT, LIMIT
from mbcasadi.validation.closed_loop import Columns, Recording
from mbcasadi.validation.metrics import active_contacts, plant_margin, predicted_margin
from mbcasadi.validation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Draw: TypeAlias = "Callable[[Axes], None]"

MOST_LINES = len(COLORS)  # of one plot, with a colour each; further ones are grey
GREY = "#d1d5db"
MOST_TARGETS = 6  # of one plot, two lines each
LEGEND_WIDTH = 78  # characters above one plot
LEGEND_HANDLE = 6  # characters that a line and its gap take
LEGEND_ROW = 0.17  # inches


def label_axes(axes: "Axes", ylabel: str) -> None:
    """Label the axes, and put a legend of all named lines above them."""
    axes.set_xlabel("t / s")
    axes.set_ylabel(ylabel)
    axes.margins(x=0)
    labels = axes.get_legend_handles_labels()[1]
    if not labels:
        return
    columns = max(1, LEGEND_WIDTH // (max(map(len, labels)) + LEGEND_HANDLE))
    rows = -(-len(labels) // columns)
    axes.figure.set_figheight(HEIGHT + LEGEND_ROW * rows)  # type: ignore[union-attr]
    axes.legend(
        ncols=columns,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.1,
        handlelength=1.2,
        columnspacing=1.0,
        labelspacing=0.2,
    )


def draw_largest(
    axes: "Axes", t: Array, values: Array, names: Sequence[str], size: Array | None = None
) -> list[int]:
    """Draw the columns with the largest values in a colour each, the others grey; in that order.

    Args:
        axes: of the plot.
        t: (nt,) s.
        values: (nt, n).
        names: of the columns, for the legend.
        size: (n,) what is large; the largest absolute value by default.

    Returns:
        The columns with a colour, in its order.
    """
    if size is None:
        size = np.nan_to_num(np.abs(values)).max(axis=0, initial=0.0)
    order = [int(i) for i in np.argsort(-size, kind="stable")]
    for i in order[MOST_LINES:]:
        axes.plot(t, values[:, i], color=GREY, linewidth=0.6, zorder=1)
    for i, color in zip(order, COLORS, strict=False):
        axes.plot(t, values[:, i], color=color, label=names[i])
    return order[:MOST_LINES]


def moving_components(run: Run, unit: str) -> list[int]:
    """Return the components in this unit whose target moves, those that move most first."""
    rows = [i for i, row in enumerate(run.tracking) if row.unit == unit]
    moving = [i for i in rows if run.tracking[i].moves]
    return sorted(moving, key=lambda i: -run.tracking[i].amplitude)


def targets(axes: "Axes", run: Run, unit: str) -> None:
    """Draw targets and motion of the components that move most, from their start."""
    record = run.recording
    target, error = record.monitor["target"], record.monitor["error"]
    for n, i in enumerate(sorted(moving_components(run, unit)[:MOST_TARGETS])):
        color, displacement = COLORS[n], target[:, i] - target[0, i]
        axes.plot(record.t, displacement, "--", color=color, linewidth=0.9)
        motion = displacement - error[:, i]
        axes.plot(record.t, motion, color=color, label=run.tracking[i].name)
    label_axes(axes, f"from the start / {unit or 'SI'}")


def estimate_errors(axes: "Axes", run: Run, rows: list[int]) -> None:
    """Draw the largest errors of an estimate, between three of its standard deviations."""
    record = run.recording
    error, deviation = (record.monitor[f"estimate_{key}"] for key in ("error", "deviation"))
    names = record.columns["monitor.estimate_error"].names
    drawn = sorted(rows, key=lambda i: -float(np.abs(error[:, i]).max()))[:MOST_TARGETS]
    for n, i in enumerate(sorted(drawn)):
        color = COLORS[n]
        axes.plot(record.t, error[:, i], color=color, label=names[i])
        for sign in (-3, 3):
            axes.plot(record.t, sign * deviation[:, i], ":", color=color, linewidth=0.9)
    label_axes(axes, "error / SI")


def innovations(axes: "Axes", run: Run) -> None:
    """Draw the distance of each measurement from what was expected, the largest first."""
    record = run.recording
    names = record.columns["monitor.estimate_residual"].names
    distance = record.monitor["estimate_residual"]
    draw_largest(axes, record.t, distance, names)
    for line in axes.get_lines():
        line.set(linestyle="", marker=".", markersize=1.5)
    label_axes(axes, "standard deviations")


def consistency(axes: "Axes", run: Run) -> None:
    """Draw the squared error of an estimate by its covariance, and its mean."""
    nees = np.maximum(np.ravel(run.recording.monitor["estimate_nees"]), 1e-6)
    axes.plot(run.recording.t, nees, color=COLORS[0], linewidth=0.9)
    axes.axhline(float(nees.mean()), color=COLORS[0], linestyle="--", linewidth=0.9)
    axes.axhline(1.0, color="#9ca3af", linewidth=0.9)
    axes.set_yscale("log")
    label_axes(axes, "squared error / expected")


def errors(axes: "Axes", run: Run, unit: str) -> None:
    """Draw the error of each component that is judged, the largest first; of all if none is."""
    record = run.recording
    error = record.monitor["error"]
    rows = [i for i, row in enumerate(run.tracking) if row.unit == unit]
    judged = [i for i in rows if run.tracking[i].judged] or rows
    draw_largest(axes, record.t, error[:, judged], [run.tracking[i].name for i in judged])
    label_axes(axes, f"error / {unit or 'SI'}")


def controls(axes: "Axes", run: Run) -> None:
    """Draw the controls, the largest first, and their limits."""
    record, controller = run.recording, run.controller
    columns = record.columns.get("u")
    units = next((s.units for s in controller.outputs if s.name == "u"), ())
    names = columns.names if columns else [f"u[{i}]" for i in range(record.u.shape[1])]
    draw_largest(axes, record.t, record.u, names)
    limits = {float(x) for x in (*controller.u_min, *controller.u_max) if np.isfinite(x)}
    reach = 2 * float(np.abs(record.u).max(initial=0.0))
    for limit in limits:
        if abs(limit) <= reach:
            axes.axhline(limit, color=LIMIT, linestyle=":", linewidth=1.0)
    units = units if any(units) or columns is None else columns.units
    unit = ", ".join(dict.fromkeys(u for u in units if u))
    label_axes(axes, f"u / {unit}" if unit else "u")


def forces(axes: "Axes", run: Run) -> None:
    """Draw our constraint force and MuJoCo's."""
    comparison = run.comparison
    if comparison is None:
        return
    names, units = _dof_names(run)
    order = np.argsort(-np.abs(comparison.mujoco_force).max(axis=0), kind="stable")[:4]
    for n, i in enumerate(order):
        color = COLORS[n]
        axes.plot(comparison.t, comparison.mujoco_force[:, i], color=color, label=names[i])
        axes.plot(
            comparison.t,
            comparison.force[:, i],
            "--",
            color="#111827",
            linewidth=0.8,
        )
    label_axes(axes, f"f_c / {' or '.join(dict.fromkeys(units[i] for i in order))}")


def _dof_names(run: Run) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the degrees of freedom, and the units of forces on them."""
    columns, nv = run.recording.columns.get("equality_force"), run.recording.v.shape[1]
    if columns is None or len(columns.names) != nv:
        return [f"dof {i}" for i in range(nv)], ["N or N m"] * nv
    return columns.names, columns.units


def closure(axes: "Axes", run: Run) -> None:
    """Draw the gaps of the loops."""
    record = run.recording
    tiny = np.finfo(float).tiny
    axes.semilogy(record.t, np.maximum(record.closure, tiny), label="MuJoCo's gap / m")
    if run.comparison is not None:
        axes.semilogy(
            run.comparison.t,
            np.maximum(run.comparison.drift, tiny),
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
    label_axes(axes, "m")


def normals(axes: "Axes", run: Run) -> None:
    """Draw the normal force of each contact, and dashed the planned one."""
    record, forces = run.recording, run.contact_forces
    for n in draw_largest(axes, record.t, record.contact_normal, record.contact_names):
        if forces is not None:
            planned = np.where(forces.active[:, n], forces.planned[:, n, 0], np.nan)
            axes.plot(forces.t, planned, "--", color="#111827", linewidth=0.8)
    label_axes(axes, "f_n / N")


def margins(axes: "Axes", run: Run) -> None:
    """Draw the friction-cone margin of each contact, the least first."""
    record = run.recording
    active = active_contacts(run.controller, record)
    margin = np.where(active, plant_margin(record), np.nan)
    least = np.nan_to_num(margin, nan=np.inf).min(axis=0, initial=np.inf)
    draw_largest(axes, record.t, margin, record.contact_names, -least)
    predicted = predicted_margin(run.controller, record)
    if predicted is not None:
        shown = np.where(active, predicted, np.nan)
        axes.plot(record.t, shown, "--", color="#111827", linewidth=0.6)
    axes.axhline(0.0, color=LIMIT, linestyle=":", linewidth=1.0)
    axes.set_ylim(-0.1, 1.02)
    label_axes(axes, "margin")


def times(axes: "Axes", run: Run) -> None:
    """Draw the distribution of tick times."""
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


JOINTS = 6  # of one plot
FIELDS = {"q": "Positions", "v": "Velocities", "u": "Controls"}
NEAR = 0.6  # limits further from the motion than this share of its range stay outside the plot


def joint_content(record: Recording) -> Iterator[tuple[str, tuple[str, str, Draw]]]:
    """Yield field, and title, caption and drawing, of each plot of the joints: q, v and u."""
    for field, title in FIELDS.items():
        columns = record.columns.get(field)
        values = getattr(record, field)
        if columns is None or values.ndim != 2 or len(columns.names) != values.shape[1]:
            continue
        for unit in dict.fromkeys(columns.units):
            rows = [i for i, each in enumerate(columns.units) if each == unit]
            for start in range(0, len(rows), JOINTS):
                shown = rows[start : start + JOINTS]
                names = columns.names[shown[0]]
                if len(shown) > 1:
                    names += f" to {columns.names[shown[-1]]}"
                caption = "Limits dotted, in the colour of their line; further ones not shown."
                draw = partial(_draw, record=record, field=field, columns=columns, rows=shown)
                yield field, (f"{title}: {names}", caption, draw)


def _draw(axes: "Axes", record: Recording, field: str, columns: Columns, rows: list[int]) -> None:
    values, unit = getattr(record, field)[:, rows], columns.units[rows[0]]
    lowest, highest = float(np.nanmin(values)), float(np.nanmax(values))
    reach = NEAR * max(highest - lowest, 1e-9)
    for n, i in enumerate(rows):
        color = COLORS[n]
        axes.plot(record.t, values[:, n], color=color, label=columns.names[i])
        for limit in columns.limits[i] if columns.limits else ():
            if lowest - reach <= limit <= highest + reach:
                axes.axhline(limit, color=color, linestyle=":", linewidth=1.1)
    label_axes(axes, f"{field} / {unit}" if unit else field)
