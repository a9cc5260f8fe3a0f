"""The examples of trajectory optimisation show what they promise."""

import runpy
import sys
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EMPTY_FIGURE = 20_000  # bytes; axes without curves take less
INSIDE = 1e-6  # solvers widen bounds by 1e-8 of their size
CLOSED = 1e-9  # m


def run(number, figure):
    """Return the example's names and what it gives."""
    (path,) = EXAMPLES.glob(f"{number}_*.py")
    sys.path.insert(0, str(EXAMPLES))
    names = runpy.run_path(str(path))
    sys.path.remove(str(EXAMPLES))
    return names, names["main"](str(figure))


def test_a_five_bar_falls_through_a_singularity_and_goes_around_it(tmp_path):
    names, runs = run(27, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > EMPTY_FIGURE
    plan, line, around = (runs[key] for key in ("plan", "straight line", "around"))
    assert plan["needed"] > 5 * names["LIMIT"]
    assert line["measure"].min() < -0.1  # it crosses zero
    assert line["off"].max() > 0.1
    assert np.abs(line["u"]).max() == names["LIMIT"]
    assert plan["solved"]
    assert plan["gap"].max() < CLOSED
    assert plan["t"][-1] < 0.6
    assert np.abs(plan["u"]).max() < names["TORQUE"] + INSIDE
    assert abs(plan["measure"].min() - names["LEAST"]) < INSIDE  # the row counts
    assert around["measure"].min() > names["LEAST"] - 0.05
    assert around["off"].max() < 0.02
    assert around["off"][-1] < 0.005
