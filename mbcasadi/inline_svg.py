"""Small figures as inline SVG, for pages and notebooks: text stays text."""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import MissingExtraError
from mbcasadi.extras import optional_module

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

COLORS = (
    "#2458a0", "#d2691e", "#2e8b57", "#8a4f9e", "#b5952a", "#c0392b",
    "#3d9db3", "#e27db5", "#7a4a21", "#86b817", "#5b5bd6", "#6b7280",
)  # fmt: skip
"""Of the lines of one plot, which has no more of them: no colour has two meanings."""

LIMIT = "#9b1c1c"
WIDTH, HEIGHT = 5.6, 3.0  # inches, without the legend
LEFT, BELOW, ABOVE = 0.4, 0.48, 0.1  # inches beside the axes, without the numbers on the left
CHARACTER = 0.078  # inches of one in a number
RIGHT = 0.985  # end of the axes, as a share of the figure
SMALL, LARGE = 1e-3, 1e6  # numbers of axes that end between them have no power of ten
MOST_POINTS = 700  # of one line; more would only make the page heavy
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
            largest = float(np.abs(axis.get_view_interval()).max())
            axis.set_major_formatter(ticker.FuncFormatter(partial(tick_text, largest=largest)))


def tick_text(value: float, _: int | None = None, *, largest: float) -> str:
    """Return the text of a tick, as many digits as it has; all of an axis in one form.

    Args:
        value: of the tick.
        largest: absolute value on the axis.
    """
    if value and not SMALL <= largest < LARGE:
        mantissa, _exponent, power = f"{value:.7e}".partition("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
    else:
        text = f"{value:.10g}"
    return text.replace("-", "\N{MINUS SIGN}")


def fit_axes(axes: "Axes") -> None:
    """Write the numbers of axes in full, and place them in their figure, below a legend."""
    write_plain_ticks(axes)
    labels = axes.yaxis.get_major_formatter().format_ticks(list(axes.get_yticks()))
    left = (LEFT + CHARACTER * max(map(len, labels), default=0)) / WIDTH
    figure: Figure = axes.figure  # type: ignore[assignment]
    height = figure.get_figheight()
    above = ABOVE + height - HEIGHT
    figure.subplots_adjust(left=left, right=RIGHT, bottom=BELOW / height, top=1 - above / height)


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


def picture(title: str, draw: "Callable[[Axes], None]") -> str:
    """Return a plot with a heading as HTML for a notebook, on white; "" without matplotlib."""
    try:
        with styled_figure(title, figure_facecolor="white") as figure:
            axes = figure.add_subplot()
            draw(axes)
            thin_lines(axes)
            fit_axes(axes)
            svg = svg_text(figure)
    except MissingExtraError:
        return ""
    return f"<p>{escape(title)}</p><div style='max-width:36em'>{svg}</div>"
