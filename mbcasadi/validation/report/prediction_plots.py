"""Functions that draw plans of a run over what then happened."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.inline_svg import COLORS, LIMIT
from mbcasadi.validation.metrics import PlanCurves
from mbcasadi.validation.report.plots import label_axes
from mbcasadi.validation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

MOST_ROWS = 3  # of one plot, each with its plans
PLAN_ALPHA = 0.55


class DrawnPlans(NamedTuple):
    """Plans to draw, of the controller itself or of an outer law: rows, units, curves."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    curves: PlanCurves

    @property
    def rows(self) -> list[int]:
        """Rows to draw: those of q, or all where the law plans in coordinates of its own."""
        positions = [i for i, name in enumerate(self.names) if name.startswith("q.")]
        return positions or list(range(len(self.names)))


def drawn_plans(run: Run) -> list[DrawnPlans]:
    """Return the plans of a run, of the controller and of the law above it."""
    found = []
    if run.predictions is not None:
        rows = run.predictions.states
        names, units = tuple(row.name for row in rows), tuple(row.unit for row in rows)
        found.append(DrawnPlans(names, units, run.predictions.curves))
    if run.plans is not None:
        found.append(DrawnPlans(run.plans.names, run.plans.units, run.plans.curves))
    return found


def planned_units(plans: DrawnPlans) -> tuple[str, ...]:
    """Return the units of the configuration rows that were predicted, or of the law's own."""
    return tuple(dict.fromkeys(plans.units[i] for i in plans.rows))


def states(axes: "Axes", plans: DrawnPlans, unit: str) -> None:
    """Draw planned states in this unit, from the start, those that move most."""
    curves = plans.curves
    candidates = [i for i in plans.rows if plans.units[i] == unit]
    drawn = sorted(candidates, key=lambda i: -float(np.ptp(curves.path[:, i])))[:MOST_ROWS]
    for n, i in enumerate(sorted(drawn)):
        color = COLORS[n]
        axes.plot(curves.path_t, curves.path[:, i], color=color, label=plans.names[i])
        for t, x in zip(curves.t, curves.x, strict=True):
            _draw_plan(axes, t, x[:, i], color)
    _limit_time(axes, curves.path_t)
    label_axes(axes, f"from the start / {unit}" if unit else "from the start")


def controls(axes: "Axes", run: Run) -> None:
    """Draw planned controls, those that move most."""
    plans = run.predictions
    if plans is None:
        return
    curves = plans.curves
    order = np.argsort(-np.ptp(curves.u_path, axis=0), kind="stable")[:MOST_ROWS]
    for n, i in enumerate(sorted(order)):
        color = COLORS[n]
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
    units = ", ".join(dict.fromkeys(u for i in order if (u := plans.controls[i].unit)))
    label_axes(axes, f"u / {units}" if units else "u")


def _draw_plan(axes: "Axes", t: Array, value: Array, color: str) -> None:
    axes.plot(t, value, "--", color=color, linewidth=0.9, alpha=PLAN_ALPHA)
    axes.plot(t[:1], value[:1], ".", color=color, markersize=3.0)


def _limit_time(axes: "Axes", t: Array) -> None:
    if t[-1] > t[0]:  # plans reach beyond the run
        axes.set_xlim(t[0], t[-1])
