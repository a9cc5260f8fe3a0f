"""Curves over time as one picture: a subplot for each quantity.

Example:
    >>> from mbcasadi import plots
    >>> swing = {"crank": ([0.0, 0.1, 0.2], [0.0, 0.3, 0.1])}
    >>> plots.save_figure("swing.png", {"angle, rad": swing})  # doctest: +SKIP
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.extras import optional_module
from mbcasadi.shapes import column, real_array, require_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["curves_of", "save_figure"]

SMALLEST = 1e-16  # shown instead of zero on a logarithmic axis
WIDTH, HEIGHT = 3.3, 2.9  # inches of one subplot
SAMPLE_WIDTH, CHARACTER_WIDTH = 0.6, 0.08  # inches in a legend, at most
COLUMNS = {1: 1, 2: 2, 4: 2}  # subplots side by side, by their number; else three

Array: TypeAlias = NDArray[np.float64]
Curves: TypeAlias = Mapping[str, tuple[Array, Array]]


@checked
def curves_of(
    runs: Mapping[str, Mapping[str, object]], titles: Mapping[str, str]
) -> dict[str, dict[str, tuple[Array, Array]]]:
    """Return the curves of several runs for `save_figure`: a subplot for each quantity.

    Args:
        runs: label → the run's arrays by name; `t` (n,) are its times, s.
        titles: title of a subplot → name of its array, (n,).

    Raises:
        UnknownNameError: a run has no array of that name, or no `t`.
        ShapeError: an array holds no numbers.
    """
    for run in runs.values():
        for name in ("t", *titles.values()):
            require_name("array", name, list(run))
    return {
        title: {
            label: (real_array("t", run["t"]), real_array(name, run[name]))
            for label, run in runs.items()
        }
        for title, name in titles.items()
    }


@checked
def save_figure(
    path: str | Path | None,
    subplots: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]],
    *,
    log: Sequence[str] = (),
    dashed: Sequence[str] = (),
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    marks: Sequence[float] = (),
) -> Any:
    """Draw curves over time, write them to a PNG, SVG or PDF file, and return matplotlib's Figure.

    Subplots share the axis of time. Where all of them have the same curves, there is one legend.

    Args:
        path: of the file, whose suffix says its kind; an earlier one is replaced. None writes no
            file: change the figure's `axes` first, then call its `savefig`.
        subplots: title with unit → label of a curve → (times, values), both (n,); s.
        log: titles of subplots with a logarithmic axis; what is below 1e-16 is shown there.
        dashed: labels of curves to be dashed.
        limits: title → lowest and highest value shown, None leaves one free.
        marks: times that a grey line marks in each subplot, s.

    Raises:
        ProblemError: no subplots, another suffix, or no such folder.
        ShapeError: times and values of a curve differ in length.
        UnknownNameError: `log` or `limits` name a title that is not there, `dashed` a label.
        MissingExtraError: matplotlib is not installed.
    """
    path, limits = None if path is None else Path(path), dict(limits or {})
    curves = {title: _arrays(title, each) for title, each in subplots.items()}
    _require(path, curves, [*log, *limits], dashed)
    figure = empty_figure()
    columns = COLUMNS.get(len(curves), 3)
    rows = -(-len(curves) // columns)
    figure.set_size_inches(WIDTH * columns, HEIGHT * rows)
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
    one_legend = len(curves) > 1 and len({tuple(each) for each in curves.values()}) == 1
    for axes, (title, each) in zip(grid, curves.items(), strict=False):
        for mark in marks:
            axes.axvline(mark, color="0.85", linewidth=2.5, zorder=0)
        _draw(axes, each, dashed, title in log)
        axes.set_title(title, fontsize=10)
        axes.set_ylim(*limits.get(title, (None, None)))
        if not one_legend:
            axes.legend(fontsize=8, ncols=1 + (len(each) > 3))
    for axes in grid[len(curves) :]:
        axes.set_axis_off()
    if one_legend:
        _legend_above(figure)
    figure.supxlabel("time, s", fontsize=10)
    if path is not None:
        figure.savefig(path, dpi=110)
    return figure


def _arrays(title: str, curves: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Curves:
    """Return the curves of a subplot as arrays of one length each."""
    result = {}
    for label, (times, values) in curves.items():
        t = real_array(f"times of '{label}'", times).ravel()
        result[label] = t, column(f"'{label}' of '{title}'", values, t.size, finite=False)
    return result


def _require(
    path: Path | None, curves: Mapping[str, Curves], titles: Sequence[str], dashed: Sequence[str]
) -> None:
    """Raise unless the figure can be drawn and written."""
    if not curves:
        raise ProblemError("subplots is empty; expected a title with its curves")
    if path is not None and path.suffix not in {".png", ".svg", ".pdf"}:
        raise ProblemError(f"{path}: expected a figure that ends with .png, .svg or .pdf")
    if path is not None and not path.absolute().parent.is_dir():
        raise ProblemError(f"cannot write {path}: there is no folder {path.parent}")
    for title in titles:
        require_name("subplot", title, list(curves))
    labels = [label for each in curves.values() for label in each]
    for label in dashed:
        require_name("curve", label, labels)


def empty_figure() -> "Figure":
    """Return a matplotlib figure without subplots."""
    figure: Figure = optional_module("matplotlib.figure", "tools", "a figure").Figure(
        layout="constrained"
    )
    return figure


def _draw(axes: "Axes", curves: Curves, dashed: Sequence[str], log: bool) -> None:
    """Draw the curves of one subplot."""
    for label, (t, values) in curves.items():
        y = np.maximum(values, SMALLEST) if log else values
        axes.plot(t, y, "--" if label in dashed else "-", label=label, linewidth=1.2)
    axes.set_yscale("log" if log else "linear")
    axes.grid(alpha=0.3)


def _legend_above(figure: "Figure") -> None:
    """Put the legend of the first subplot above all of them, in as many rows as it needs."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    entry = SAMPLE_WIDTH + CHARACTER_WIDTH * max(map(len, labels))
    columns = min(len(labels), max(1, int(figure.get_figwidth() / entry)))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=9)
