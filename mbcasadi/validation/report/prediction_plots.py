"""What is drawn of plans: fans over what then happened."""

from typing import Any

import numpy as np

from mbcasadi.validation.report.plots import COLORS, LIMIT, Drawing, finish
from mbcasadi.validation.run.run import Run

MOST_ROWS = 3  # of one plot, each with its fan
FAINT = 0.55


def planned_units(run: Run) -> tuple[str, ...]:
    """Return the units of the configuration rows that were predicted, or of the law's own."""
    found = run.predictions
    return () if found is None else tuple(dict.fromkeys(found.states[i].unit for i in _drawn(run)))


def _drawn(run: Run) -> list[int]:
    """Return rows to draw: those of q, or all where the law plans in coordinates of its own."""
    if run.predictions is None:
        return []
    rows = run.predictions.states
    places = [i for i, row in enumerate(rows) if row.name.startswith("q.")]
    return places or list(range(len(rows)))


def states(run: Run, unit: str) -> Drawing:
    """Draw planned states in this unit, from the start, those that move most."""

    def draw(axes: Any) -> None:
        found = run.predictions
        if found is None:
            return
        fans = found.fans
        mine = [i for i in _drawn(run) if found.states[i].unit == unit]
        chosen = sorted(mine, key=lambda i: -float(np.ptp(fans.path[:, i])))[:MOST_ROWS]
        for n, i in enumerate(sorted(chosen)):
            color = COLORS[n % len(COLORS)]
            axes.plot(fans.path_t, fans.path[:, i], color=color, label=found.states[i].name)
            for t, x in zip(fans.t, fans.x, strict=True):
                _fan(axes, t, x[:, i], color)
        _until(axes, fans.path_t)
        finish(axes, f"from the start / {unit}" if unit else "from the start", legend=True)

    return draw


def controls(run: Run) -> Drawing:
    """Draw planned controls, those that move most."""

    def draw(axes: Any) -> None:
        found = run.predictions
        if found is None:
            return
        fans = found.fans
        order = np.argsort(-np.ptp(fans.u_path, axis=0), kind="stable")[:MOST_ROWS]
        for n, i in enumerate(sorted(order)):
            color = COLORS[n % len(COLORS)]
            name = found.controls[i].name
            axes.plot(
                fans.path_t, fans.u_path[:, i], color=color, label=name, drawstyle="steps-post"
            )
            for t, u in zip(fans.t[:, :-1], fans.u, strict=True):
                _fan(axes, t, u[:, i], color)
        for limit in {*run.controller.u_min[order], *run.controller.u_max[order]}:
            if np.isfinite(limit):
                axes.axhline(limit, color=LIMIT, linestyle=":", linewidth=1.0)
        _until(axes, fans.path_t)
        finish(axes, "u", legend=True)

    return draw


def _fan(axes: Any, t: Any, value: Any, color: str) -> None:
    axes.plot(t, value, "--", color=color, linewidth=0.9, alpha=FAINT)
    axes.plot(t[:1], value[:1], ".", color=color, markersize=3.0)


def _until(axes: Any, t: Any) -> None:
    if t[-1] > t[0]:  # plans reach beyond the run
        axes.set_xlim(t[0], t[-1])
