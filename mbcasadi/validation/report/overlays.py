"""Curves of several runs over each other: errors, controls, positions and velocities."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.inline_svg import COLORS, thin_lines
from mbcasadi.validation.report.plots import Draw, label_axes
from mbcasadi.validation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
TITLES = {"error": "Error of", "u": "Control", "q": "Position", "v": "Velocity"}
MOST = 12  # of a field, those with the largest values


class Overlay(NamedTuple):
    """One quantity in several runs.

    Attributes:
        field: error, u, q or v.
        title: with its unit.
        curves: label → times (n,), s, and values (n,).
    """

    field: str
    title: str
    curves: dict[str, tuple[Array, Array]]

    @property
    def draw(self) -> Draw:
        """Function that draws the curves on axes."""
        return partial(_draw, overlay=self)

    @property
    def content(self) -> tuple[str, str, Draw]:
        """Title, caption and drawing of a figure."""
        return self.title, "", self.draw


def overlays(runs: Mapping[str, Run]) -> tuple[list[Overlay], list[Overlay]]:
    """Return what all runs have: errors and controls to show, positions and velocities behind.

    Without errors in common the positions are shown too.
    """
    errors, controls, positions, velocities = (_of_field(runs, field) for field in TITLES)
    if errors:
        return [*errors, *controls], [*positions, *velocities]
    return [*positions, *controls], velocities


def _of_field(runs: Mapping[str, Run], field: str) -> list[Overlay]:
    """Return the columns of a field that all runs have, those with the largest values first."""
    columns = {label: _columns(run, field) for label, run in runs.items()}
    first = next(iter(columns.values()))
    common = [key for key in first if all(key in each for each in columns.values())]
    size = {key: max(_size(each[key]) for each in columns.values()) for key in common}
    result = []
    for key in sorted(common, key=lambda key: -size[key])[:MOST]:
        name, unit = key
        title = f"{TITLES[field]} {name}" + (f", {unit}" if unit else "")
        curves = {label: (runs[label].recording.t, columns[label][key]) for label in runs}
        result.append(Overlay(field, title, curves))
    return result


def _size(values: Array) -> float:
    return float(np.nan_to_num(np.abs(values)).max(initial=0.0))


def _columns(run: Run, field: str) -> dict[tuple[str, str], Array]:
    """Return (name, unit) of each column of a field → its values."""
    record = run.recording
    if field == "error":
        values = record.monitor.get("error", np.zeros((record.ticks, 0)))
        keys = [(row.name, row.unit) for row in run.tracking]
    else:
        values, columns = getattr(record, field), record.columns.get(field)
        keys = [] if columns is None else list(zip(columns.names, columns.units, strict=True))
    return dict(zip(keys, values.T, strict=False))


def _draw(axes: "Axes", overlay: Overlay) -> None:
    """Draw one curve for each run."""
    for color, (label, (t, values)) in zip(COLORS, overlay.curves.items(), strict=False):
        axes.plot(t, values, color=color, label=label)
    thin_lines(axes)
    unit = overlay.title.rpartition(", ")[2] if ", " in overlay.title else ""
    label_axes(axes, f"{overlay.field} / {unit}" if unit else overlay.field)
