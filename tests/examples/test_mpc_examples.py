"""The examples of MPC show what they promise."""

import runpy
import sys
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EMPTY_FIGURE = 20_000  # bytes; axes without curves take less


def test_a_four_bar_forgets_a_load_that_is_estimated(tmp_path):
    (path,) = EXAMPLES.glob("26_*.py")
    sys.path.insert(0, str(EXAMPLES))
    names = runpy.run_path(str(path))
    sys.path.remove(str(EXAMPLES))
    figure = tmp_path / "figure.png"
    runs = names["main"](str(figure))
    assert figure.stat().st_size > EMPTY_FIGURE
    for found in runs.values():
        assert np.abs(found["u"]).max() == names["LIMIT"]
        assert abs(found["error"][0]) > 0.3
    assert abs(runs["plain"]["error"][-1]) > 0.02
    assert abs(runs["offset-free"]["error"][-1]) < 1e-3
