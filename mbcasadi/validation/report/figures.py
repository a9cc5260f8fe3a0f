"""The figures of a run, as inline SVG."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from mbcasadi.inline_svg import fit_axes, styled_figure, svg_text, thin_lines
from mbcasadi.validation.report import plots, prediction_plots
from mbcasadi.validation.report.plots import Draw, joint_content
from mbcasadi.validation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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

    Positions and velocities of joints are folded where the run has targets, whose errors say more.

    Args:
        run: of a report.
        prefix: of the ids of curves, unique on the page.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    joints = list(joint_content(run.recording))
    shown = [] if run.tracking else [plot for field, plot in joints if field != "u"]
    folded = [plot for field, plot in joints if run.tracking or field == "u"]
    result = []
    for i, (title, caption, draw) in enumerate([*_content(run), *shown, *folded]):
        with styled_figure(f"{run.name}-{i}") as figure:
            axes = figure.add_subplot()
            draw(axes)
            thin_lines(axes)
            fit_axes(axes)
            marks = mark_lines(axes, f"{prefix}-{i}")
            result.append(Figure(title, caption, svg_text(figure), marks))
    first = len(result) - len(folded)
    return result[:first] + [replace(each, joint=True) for each in result[first:]]


def plain_figures(content: Iterable[tuple[str, str, Draw]], prefix: str) -> list[Figure]:
    """Return figures without values to hover over.

    Args:
        content: title, caption and drawing of each.
        prefix: of the ids within their SVG, unique on the page.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    result = []
    for i, (title, caption, draw) in enumerate(content):
        with styled_figure(f"{prefix}-{i}") as figure:
            axes = figure.add_subplot()
            draw(axes)
            fit_axes(axes)
            result.append(Figure(title, caption, svg_text(figure)))
    return result


def first_plot(run: Run) -> tuple[str, Draw] | None:
    """Return title and drawing of the plot that says most: errors, else positions, else controls.

    None for a run without ticks.
    """
    if not run.recording.ticks:
        return None
    joints = [plot for field, plot in joint_content(run.recording) if field == "q"]
    plots_of_run = list(_content(run))
    errors = [each for each in plots_of_run if each[0].startswith("Tracking error")]
    best = [*errors, *joints, *plots_of_run]
    return (best[0][0], best[0][2]) if best else None


def _content(run: Run) -> Iterator[tuple[str, str, Draw]]:
    """Yield title, caption and drawing of each plot."""
    record = run.recording
    for unit in dict.fromkeys(row.unit for row in run.tracking):
        suffix = f" ({unit})" if unit else ""
        if plots.moving_components(run, unit):
            caption = "Target dashed, motion solid."
            yield f"Targets and motion{suffix}", caption, partial(plots.targets, run=run, unit=unit)
        caption = "Target minus motion, the largest first, further ones grey; rows that no "
        caption += "criterion judges are not shown beside those that one does."
        yield f"Tracking error{suffix}", caption, partial(plots.errors, run=run, unit=unit)
    caption = "The largest first, the others grey; limits dotted, a control is clipped there."
    yield "Controls", caption, partial(plots.controls, run=run)
    yield from _plan_content(run)
    yield from _estimate_content(run)
    if run.comparison is not None and record.equality_force.any():
        caption = "Our equations dashed, MuJoCo solid; the joints with the largest force."
        yield "Constraint force of the loops", caption, partial(plots.forces, run=run)
        caption = "Worst gap in MuJoCo, and the residual of our equations at the same states."
        yield "Closure of the loops", caption, partial(plots.closure, run=run)
    if record.contact_names:
        caption = "Force of the floor on each contact in MuJoCo, largest first; dashed: planned."
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
