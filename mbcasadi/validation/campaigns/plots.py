"""The plots of a campaign: pass rate over parameters, passes and failures, histograms."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbcasadi.inline_svg import COLORS, LIMIT
from mbcasadi.validation.campaigns.outcome import Outcome, parameter_table, pass_rate
from mbcasadi.validation.metrics import METRICS, base_name
from mbcasadi.validation.metrics.text import metric_text
from mbcasadi.validation.report.figures import Figure, plain_figures
from mbcasadi.validation.report.plots import Draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
BINS = 8  # of a parameter
COLUMNS = 30  # of a histogram
MOST_PLOTS = 6  # of a kind
MOST_POINTS = 1500
SHARE = 100.0  # from a share to per cent
WIDE = 20.0  # ratio of the ends of a histogram from which on its axis is logarithmic
PARAMETER_UNITS = {
    "delay": "ticks",
    "start_error": "rad or m",
    "disturbance": "of the disturbance",
    "com": "half-lengths of a body",
}
"""Units of parameters that are no relative errors."""


def campaign_figures(outcomes: Sequence[Outcome], judged: Sequence[str]) -> list[Figure]:
    """Return the figures of a campaign.

    Args:
        outcomes: of the campaign.
        judged: metrics with a criterion.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    return plain_figures(campaign_plots(outcomes, judged), "campaign")


def campaign_plots(
    outcomes: Sequence[Outcome], judged: Sequence[str]
) -> Iterator[tuple[str, str, Draw]]:
    """Yield title, caption and drawing of each plot."""
    passed = np.array([outcome.passed is True for outcome in outcomes])
    names, table = parameter_table([outcome.case for outcome in outcomes])
    order = _by_effect(table, passed)
    for i in order[:MOST_PLOTS]:
        caption = "Share of runs that passed, with its 95 % interval, in parts of the range."
        draw = partial(_rates, name=names[i], values=table[:, i], passed=passed)
        yield f"Pass rate over {names[i]}", caption, draw
    if len(order) > 1:
        a, b = order[:2]
        caption = "Runs that passed (dots) and failed (crosses)."
        points = table[:, [a, b]]
        draw = partial(_scatter, names=(names[a], names[b]), points=points, passed=passed)
        yield f"Passes and failures over {names[a]} and {names[b]}", caption, draw
    for name in judged[:MOST_PLOTS]:
        values = np.array([outcome.metric(name) for outcome in outcomes])
        limits = [v.limit for o in outcomes for v in o.verdicts if v.metric == name]
        if np.isfinite(values).sum() > 1 and np.ptp(values[np.isfinite(values)]) > 0:
            caption = "Number of runs; the limit is dotted."
            unit = next((m.unit for o in outcomes for m in o.metrics if m.name == name), "")
            draw = partial(_histogram, name=name, unit=unit, values=values, limit=limits[0])
            yield metric_text(name), caption, draw


def _by_effect(table: Array, passed: NDArray[np.bool_]) -> list[int]:
    """Return the columns, those first whose values differ most between passes and failures."""
    if not table.shape[1]:
        return []
    if passed.all() or not passed.any():
        return list(range(table.shape[1]))
    centre = table - np.median(table, axis=0)  # failures lie at both ends of a range, often
    spread = np.where(table.std(axis=0) > 0, table.std(axis=0), 1.0)
    shift = [np.abs(x[passed].mean(axis=0) - x[~passed].mean(axis=0)) for x in (table, abs(centre))]
    return [int(i) for i in np.argsort(-np.max(shift, axis=0) / spread, kind="stable")]


def _rates(axes: "Axes", name: str, values: Array, passed: NDArray[np.bool_]) -> None:
    """Draw the pass rate in parts of a parameter's range."""
    levels = np.unique(values)
    few = levels.size <= BINS
    edges = np.linspace(values.min(), values.max(), BINS + 1)
    places = np.clip(np.digitize(values, edges) - 1, 0, BINS - 1)
    groups = np.searchsorted(levels, values) if few else places
    centres = levels if few else (edges[1:] + edges[:-1]) / 2
    shown = np.unique(groups)
    rates = [pass_rate(int(passed[groups == k].sum()), int((groups == k).sum())) for k in shown]
    middle = SHARE * np.array([rate.rate for rate in rates])
    low = middle - SHARE * np.array([rate.low for rate in rates])
    high = SHARE * np.array([rate.high for rate in rates]) - middle
    errors = np.maximum([low, high], 0.0)
    label, scale = parameter_axis(name)
    axes.errorbar(scale * centres[shown], middle, errors, fmt="o-", color=COLORS[0], capsize=3)
    axes.set_ylim(-4, 104)
    axes.set_xlabel(label)
    axes.set_ylabel("runs that passed / %")


def _scatter(
    axes: "Axes", names: tuple[str, str], points: Array, passed: NDArray[np.bool_]
) -> None:
    """Draw the cases over two parameters."""
    step = max(1, -(-len(points) // MOST_POINTS))
    labels, scales = zip(*map(parameter_axis, names), strict=True)
    points = points * np.array(scales)
    good, bad = points[passed][::step], points[~passed][::step]
    axes.plot(*good.T, ".", color=COLORS[0], markersize=4, alpha=0.6)
    axes.plot(*bad.T, "x", color=LIMIT, markersize=4, alpha=0.7)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])


def _histogram(axes: "Axes", name: str, unit: str, values: Array, limit: float) -> None:
    """Draw the distribution of a metric and its limit, both in view."""
    kind = METRICS.get(base_name(name))
    scale = SHARE if kind is not None and kind.quantity == "share" else 1.0
    data, bound = scale * values[np.isfinite(values)], scale * limit
    low, high = float(data.min()), float(data.max())
    if np.isfinite(bound):
        low, high = min(low, bound), max(high, bound)
        axes.axvline(bound, color=LIMIT, linestyle=":", linewidth=1.2)
    if low > 0 and high > WIDE * low:
        axes.set_xscale("log")
        edges = np.geomspace(low, high, COLUMNS + 1)
    else:
        edges = np.linspace(low, high, COLUMNS + 1)
    axes.hist(data, bins=list(edges), color=COLORS[0])
    axes.locator_params(axis="y", integer=True)
    unit = "%" if scale == SHARE else unit
    axes.set_xlabel(metric_text(name) + (f" / {unit}" if unit else ""))
    axes.set_ylabel("runs")


def parameter_axis(name: str) -> tuple[str, float]:
    """Return the label of a parameter's axis, with its unit, and the factor of its values."""
    unit = PARAMETER_UNITS.get(name)
    return (f"error of {name} / %", SHARE) if unit is None else (f"{name} / {unit}", 1.0)
