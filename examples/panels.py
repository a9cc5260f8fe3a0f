"""Figures of the examples: panels of curves over time, written as one PNG file."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

SMALLEST = 1e-16  # shown instead of zero on a logarithmic axis
WIDTH, HEIGHT = 3.3, 2.9  # inches of one panel


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: with the unit.
        curves: label → (times, values).
        log: logarithmic values.
        dashed: labels of curves to be dashed.
        limits: lowest and highest value shown; None leaves one free.
    """

    title: str
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]]
    log: bool = False
    dashed: Sequence[str] = ()
    limits: tuple[float | None, float | None] = (None, None)


def figure_path(about: str) -> str | None:
    """Return the value of `--figure` on the command line, or None."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--figure", metavar="PATH", help="write the figure to this PNG file")
    return parser.parse_args().figure


def draw(
    path: str,
    panels: Sequence[Panel],
    columns: int = 3,
    *,
    marks: Iterable[float] = (),
    one_legend: bool = False,
) -> None:
    """Write the panels to a PNG file, row by row.

    Args:
        path: of the file.
        panels: the panels, from left to right.
        columns: panels in one row.
        marks: times that a grey line marks in each panel.
        one_legend: all panels have the same curves: one legend above them.
    """
    import matplotlib.pyplot as plt

    rows = -(-len(panels) // columns)
    size = (WIDTH * columns, HEIGHT * rows)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, sharex=True, layout="constrained", squeeze=False
    )
    for axis, panel in zip(axes.ravel(), panels, strict=True):
        for mark in marks:
            axis.axvline(mark, color="0.85", linewidth=2.5, zorder=0)
        for label, (t, values) in panel.curves.items():
            y = np.maximum(values, SMALLEST) if panel.log else values
            dashed = label in panel.dashed
            axis.plot(t, y, "--" if dashed else "-", label=label, linewidth=1.2)
        axis.set_title(panel.title, fontsize=10)
        axis.set_yscale("log" if panel.log else "linear")
        axis.set_ylim(*panel.limits)
        axis.grid(alpha=0.3)
        if not one_legend:
            axis.legend(fontsize=8, ncols=1 + (len(panel.curves) > 3))
    if one_legend:
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=9)
    figure.supxlabel("time, s", fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)
