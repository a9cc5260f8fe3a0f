"""The examples of impedance and of laws within their limits show what they promise."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EMPTY_FIGURE = 20_000  # bytes; axes without curves take less


def result(number, tmp_path):
    (path,) = EXAMPLES.glob(f"{number}_*.py")
    sys.path.insert(0, str(EXAMPLES))
    names = runpy.run_path(str(path))
    sys.path.remove(str(EXAMPLES))
    figure = tmp_path / "figure.png"
    found = names["main"](str(figure))
    assert figure.stat().st_size > EMPTY_FIGURE
    assert "You will see" in names["__doc__"]
    return found


def test_a_pushed_tool_gives_way_by_force_over_stiffness(tmp_path):
    found = result("23", tmp_path)
    for run in found.values():
        np.testing.assert_allclose(run["end"], [15.0, -7.5], rtol=0.02)
        assert np.abs(run["shift"][0]).max() < 1e-6
    light, heavy = found["own inertia"]["soon"], found["5 kg, push measured"]["soon"]
    assert heavy == pytest.approx(light / 2, rel=0.2)
    expected = 1e3 * np.hypot(6.0, 3.0) / 5.0 * 0.05**2 / 2  # of 5 kg, springs not yet felt
    assert 0.7 * expected < heavy < expected


def test_a_tool_keeps_its_line_though_a_motor_is_too_weak(tmp_path):
    found = result("24", tmp_path)
    cut, kept = found["cut"], found["within limits"]
    assert cut["saturated"] > 0.1
    assert np.abs(kept["u"][:, 0]).max() <= 4.0
    assert cut["largest"] > 20.0
    assert kept["largest"] < 0.4 * cut["largest"]
    assert kept["off"] < 0.6 * cut["off"]
