"""Small figures as inline SVG, for pages and notebooks: text stays text."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mbcasadi.extras import optional_module

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = (
    "#2458a0", "#d2691e", "#2e8b57", "#8a4f9e", "#b5952a", "#c0392b",
    "#3d9db3", "#e27db5", "#7a4a21", "#86b817", "#5b5bd6", "#6b7280",
)  # fmt: skip
"""Of the lines of one plot, which has no more of them: no colour has two meanings."""

LIMIT = "#9b1c1c"
WIDTH, HEIGHT = 5.6, 3.0  # inches, without the legend
STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # names of a model are no formulas
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9ca3af",
    "axes.labelcolor": "#374151",
    "axes.grid": True,
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.7,
    "xtick.color": "#4b5563",
    "ytick.color": "#4b5563",
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


@contextmanager
def styled_figure(salt: str, **style: object) -> Iterator["Figure"]:
    """Yield a new figure in our style.

    Args:
        salt: makes the ids of its SVG.
        style: further settings of matplotlib, with `_` for `.`.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    styles, module = (
        optional_module(f"matplotlib.{name}", "tools", "a plot") for name in ("style", "figure")
    )
    own = {name.replace("_", "."): value for name, value in style.items()}
    with styles.context(STYLE | {"svg.hashsalt": salt} | own):
        yield module.Figure(figsize=(WIDTH, HEIGHT))


def svg_text(figure: "Figure") -> str:
    """Return a figure as the text of an SVG element."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub(r'="[^"]*"', _to_hundredths, text)  # coordinates; the labels stay


def _to_hundredths(attribute: re.Match[str]) -> str:
    """Return an attribute with its numbers truncated to hundredths of a point."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", attribute[0])


def write_plain_ticks(axes: "Axes") -> None:
    """Write the numbers of both axes in full: no formula, no offset or factor beside the axis."""
    ticker = optional_module("matplotlib.ticker", "tools", "a plot")
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(ticker.LogFormatter())
            axis.set_minor_formatter(ticker.LogFormatter(minor_thresholds=(1, 0.4)))
        elif isinstance(axis.get_major_formatter(), ticker.ScalarFormatter):
            axis.set_major_formatter(ticker.FuncFormatter(tick_text))


def tick_text(value: float, _: int | None = None) -> str:
    """Return the text of a tick: as many digits as it has, with a minus sign."""
    return f"{value:.8g}".replace("-", "\N{MINUS SIGN}")
