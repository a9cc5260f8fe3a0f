"""Figures of curves over time: what is drawn, and what is refused."""

import re
import sys

import numpy as np
import pytest

from mbcasadi.errors import MissingExtraError, ProblemError, ShapeError, UnknownNameError
from mbcasadi.plots import curves_of, save_figure

T = np.array([0.0, 1.0, 4.0])
CURVES = {"angle, rad": {"left": (T, [2.0, 3.0, 5.0])}, "force, N": {"right": (T, [1.0, 1e2, 1e4])}}


def points(page):
    """Return the vertices of each curve of three points, in the picture's units."""
    number = r"([-\d.]+) ([-\d.]+)"
    lines = re.findall(rf'd="M {number} \nL {number} \nL {number} \n" clip-path', page)
    return [np.reshape([float(x) for x in line], (3, 2)) for line in lines]


def test_lines_have_the_shape_of_their_values(tmp_path):
    path = tmp_path / "curves.svg"
    figure = save_figure(path, CURVES, log=["force, N"], marks=[2.0])
    assert [axes.get_title() for axes in figure.axes] == [*CURVES]
    assert save_figure(None, CURVES).axes[1].get_yscale() == "linear"
    page = path.read_text()
    for text in ("angle, rad", "force, N", "time, s", "left", "right"):
        assert f"<!-- {text} -->" in page
    plain, logarithmic = points(page)
    for line, values in ((plain, [2.0, 3.0, 5.0]), (logarithmic, np.log([1.0, 1e2, 1e4]))):
        (x0, y0), (x1, y1), (x2, y2) = line
        assert (x1 - x0) / (x2 - x0) == pytest.approx(1 / 4, abs=1e-4)
        assert (y1 - y0) / (y2 - y0) == pytest.approx(
            (values[1] - values[0]) / (values[2] - values[0]), abs=1e-4
        )


def test_one_legend_serves_subplots_of_the_same_curves(tmp_path):
    runs = {"a": {"t": T, "x": T, "v": T}, "b": {"t": T, "x": -T, "v": 2 * T}}
    curves = curves_of(runs, {"x, m": "x", "v, m/s": "v"})
    assert list(curves) == ["x, m", "v, m/s"]
    np.testing.assert_array_equal(curves["x, m"]["b"][1], -T)
    save_figure(tmp_path / "both.svg", curves)
    page = (tmp_path / "both.svg").read_text()
    assert page.count("<!-- a -->") == 1
    two = {"x, m": curves["x, m"], "v, m/s": {"a": curves["v, m/s"]["a"]}}
    save_figure(tmp_path / "two.svg", two)
    assert (tmp_path / "two.svg").read_text().count("<!-- a -->") == 2


def test_what_cannot_be_drawn_is_refused(tmp_path):
    path = tmp_path / "curves.png"
    with pytest.raises(ProblemError, match=r"expected a figure that ends with \.png"):
        save_figure(tmp_path / "curves.txt", CURVES)
    with pytest.raises(ProblemError, match="there is no folder"):
        save_figure(tmp_path / "none" / "curves.png", CURVES)
    with pytest.raises(ProblemError, match="subplots is empty"):
        save_figure(path, {})
    with pytest.raises(ShapeError, match=r"'a' of 'x' has shape \(2,\), expected \(3,\)"):
        save_figure(path, {"x": {"a": (T, [1.0, 2.0])}})
    with pytest.raises(UnknownNameError, match="did you mean 'force, N'"):
        save_figure(path, CURVES, log=["force"])
    with pytest.raises(UnknownNameError, match="unknown curve"):
        save_figure(path, CURVES, dashed=["middle"])
    with pytest.raises(UnknownNameError, match="unknown array 'y'"):
        curves_of({"a": {"t": T, "x": T}}, {"y, m": "y"})
    assert not path.exists()


def test_a_missing_matplotlib_is_named_with_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r'pip install "mbcasadi\[tools\]"'):
        save_figure(tmp_path / "curves.png", CURVES)
