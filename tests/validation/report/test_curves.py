"""Curves of a page keep their extremes, and a reader gets their values from the SVG."""

import json
import re
from html import unescape

import numpy as np
import pytest
from matplotlib.figure import Figure

from mbcasadi import models
from mbcasadi.inline_svg import MOST_POINTS, extremes, svg_text
from mbcasadi.validation import validate

PICTURE_POINT = 0.02  # points of the SVG, which has hundredths


def test_a_thin_curve_keeps_its_extremes_its_ends_and_its_gaps():
    y = np.sin(np.arange(10_000.0))
    y[1234], y[8765], y[5000:5600] = 40.0, -50.0, np.nan
    kept = extremes(y, 50)
    assert len(kept) <= 4 * 50
    assert {0, 1234, 8765, 9999} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()
    assert np.isnan(y[kept]).any()


def push(t, q, v):
    return [2.0 if 0.5 <= t < 0.501 else -0.1]


@pytest.fixture(scope="module")
def report():
    return validate(push, models.path("four_bar"), 1.0)


def test_the_labels_of_an_axis_keep_their_digits():
    figure = Figure()
    figure.add_subplot().plot([0.0, 0.005])
    assert "<!-- 0.005 -->" in svg_text(figure)


def figures(page):
    """Return title → (its axes, its SVG)."""
    found = re.findall(
        r'<figure data-axes="(.*?)"><figcaption><h3>(.*?)</h3>.*?(<svg.*?</svg>)', page, re.DOTALL
    )
    return {unescape(title): (json.loads(unescape(axes)), svg) for axes, title, svg in found}


def test_joints_are_drawn_with_units_and_their_values_can_be_read(report):
    record = report.runs[0].recording
    found = figures(report.to_html())
    for field, unit, title in (("q", "rad", "Positions"), ("u", "N m", "Controls")):
        names = record.columns[field].names
        heading = next(t for t in found if t.startswith(f"{title}: {names[0]}"))
        axes, svg = found[heading]
        assert f"{field} / {unit}" in svg
        left, right, top, bottom = axes["box"]
        assert set(axes["names"].values()) == set(names)
        for key, name in axes["names"].items():
            path = re.search(rf'<g id="{key}">\s*<path d="(.*?)"', svg, re.DOTALL)
            assert path is not None
            xy = np.array(re.findall(r"-?\d+\.?\d*", path[1]), dtype=float).reshape(-1, 2)
            low, high = axes["y"]
            y = low + (bottom - xy[:, 1]) / (bottom - top) * (high - low)
            tolerance = PICTURE_POINT * (high - low) / (bottom - top)
            column = getattr(record, field)[:, names.index(name)]
            assert abs(y.max() - column.max()) < tolerance, name  # the short push is kept
            assert abs(y.min() - column.min()) < tolerance, name
            assert len(xy) <= 2 * MOST_POINTS
            t = axes["x"][0] + (xy[:, 0] - left) / (right - left) * np.diff(axes["x"])
            between = np.interp(t, record.t, column)
            assert np.median(np.abs(y - between)) < 2 * tolerance, name
