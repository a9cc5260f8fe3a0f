"""Functions that draw plans of a run over what then happened."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.report.plots import COLORS, LIMIT, label_axes
from mbcasadi.validation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

MOST_ROWS = 3  # of one plot, each with its plans
PLAN_ALPHA = 0.55


def planned_units(run: Run) -> tuple[str, ...]:
    """Return the units of the configuration rows that were predicted, or of the law's own."""
    plans = run.predictions
    if plans is None:
        return ()
    return tuple(dict.fromkeys(plans.states[i].unit for i in _drawn_rows(run)))


def _drawn_rows(run: Run) -> list[int]:
    """Return rows to draw: those of q, or all where the law plans in coordinates of its own."""
    if run.predictions is None:
        return []
    rows = run.predictions.states
    positions = [i for i, row in enumerate(rows) if row.name.startswith("q.")]
    return positions or list(range(len(rows)))


def states(axes: "Axes", run: Run, unit: str) -> None:
    """Draw planned states in this unit, from the start, those that move most."""
    plans = run.predictions
    if plans is None:
        return
    curves = plans.curves
    candidates = [i for i in _drawn_rows(run) if plans.states[i].unit == unit]
    drawn = sorted(candidates, key=lambda i: -float(np.ptp(curves.path[:, i])))[:MOST_ROWS]
    for n, i in enumerate(sorted(drawn)):
        color = COLORS[n % len(COLORS)]
        axes.plot(curves.path_t, curves.path[:, i], color=color, label=plans.states[i].name)
        for t, x in zip(curves.t, curves.x, strict=True):
            _draw_plan(axes, t, x[:, i], color)
    _limit_time(axes, curves.path_t)
    label_axes(axes, f"from the start / {unit}" if unit else "from the start", legend=True)


def controls(axes: "Axes", run: Run) -> None:
    """Draw planned controls, those that move most."""
    plans = run.predictions
    if plans is None:
        return
    curves = plans.curves
    order = np.argsort(-np.ptp(curves.u_path, axis=0), kind="stable")[:MOST_ROWS]
    for n, i in enumerate(sorted(order)):
        color = COLORS[n % len(COLORS)]
        name = plans.controls[i].name
        axes.plot(
            curves.path_t, curves.u_path[:, i], color=color, label=name, drawstyle="steps-post"
        )
        for t, u in zip(curves.t[:, :-1], curves.u, strict=True):
            _draw_plan(axes, t, u[:, i], color)
    for limit in {*run.controller.u_min[order], *run.controller.u_max[order]}:
        if np.isfinite(limit):
            axes.axhline(limit, color=LIMIT, linestyle=":", linewidth=1.0)
    _limit_time(axes, curves.path_t)
    label_axes(axes, "u", legend=True)


def _draw_plan(axes: "Axes", t: Array, value: Array, color: str) -> None:
    axes.plot(t, value, "--", color=color, linewidth=0.9, alpha=PLAN_ALPHA)
    axes.plot(t[:1], value[:1], ".", color=color, markersize=3.0)


def _limit_time(axes: "Axes", t: Array) -> None:
    if t[-1] > t[0]:  # plans reach beyond the run
        axes.set_xlim(t[0], t[-1])
