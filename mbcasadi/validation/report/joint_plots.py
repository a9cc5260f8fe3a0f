"""Functions that draw the motion of the joints, a few in each plot, with their limits."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mbcasadi.validation.closed_loop import Columns, Recording
from mbcasadi.validation.report.plots import COLORS, Draw, label_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

JOINTS = 6  # of one plot
FIELDS = {"q": "Positions", "v": "Velocities", "u": "Controls"}
NEAR = 0.6  # limits further from the motion than this share of its range stay outside the plot


def joint_content(record: Recording) -> Iterator[tuple[str, str, Draw]]:
    """Yield title, caption and drawing of each plot of the joints: q, v and u."""
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
                yield f"{title}: {names}", caption, _draw(record, field, columns, shown, unit)


def _draw(record: Recording, field: str, columns: Columns, rows: list[int], unit: str) -> Draw:
    def draw(axes: "Axes") -> None:
        values = getattr(record, field)[:, rows]
        lowest, highest = float(np.nanmin(values)), float(np.nanmax(values))
        reach = NEAR * max(highest - lowest, 1e-9)
        for n, i in enumerate(rows):
            color = COLORS[n % len(COLORS)]
            axes.plot(record.t, values[:, n], color=color, label=columns.names[i])
            for limit in columns.limits[i] if columns.limits else ():
                if lowest - reach <= limit <= highest + reach:
                    axes.axhline(limit, color=color, linestyle=":", linewidth=1.1)
        label_axes(axes, f"{field} / {unit}" if unit else field, legend=True, named=True)

    return draw
