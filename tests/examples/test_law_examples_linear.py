"""The examples of linear models and of S20's laws run, and show what their first lines promise."""

import runpy
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EMPTY_FIGURE = 5_000  # bytes


def run(number, folder):
    (path,) = EXAMPLES.glob(f"{number}_*.py")
    figure = folder / "figure.png"
    found = runpy.run_path(str(path))["main"](str(figure))
    assert figure.stat().st_size > EMPTY_FIGURE
    return found


def test_the_quadruped_falls_as_its_linear_model_says(tmp_path):
    found = run("18", tmp_path)
    held, falls, linear = found["held"], found["falls"], found["linear"]
    assert np.abs(held.residual).max() < 1e-9
    assert falls[-1] > 50  # the push has grown
    np.testing.assert_allclose(falls, linear, rtol=0.02)
    assert all("is controllable" in line for line in found["words"].values())
    rates = found["rates"]
    np.testing.assert_allclose(np.log(falls[-1]) / 0.7, rates.real.max(), rtol=0.05)


def test_both_inverse_dynamics_track_and_differ_by_the_square_of_the_size(tmp_path):
    found = run("19", tmp_path)
    for metrics in found["runs"].values():
        assert metrics["tracking.rms_share"] < 0.01
        assert metrics["status.solved"] == 1.0
    largest = [off.max() / size**2 for size, off in found["off"].items()]
    np.testing.assert_allclose(largest, largest[0], rtol=0.15)
