"""Curves of a plot: few enough points for a page, and what a page needs to read their values."""

import json
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
