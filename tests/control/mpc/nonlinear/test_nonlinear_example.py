"""The example of trajectory optimisation does what its first lines say."""

import runpy
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


def test_a_pendulum_swings_up_on_a_four_bar_within_the_motors_limit(capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    path = EXAMPLES / "25_a_pendulum_swings_up_on_a_four_bar.py"
    found = runpy.run_path(str(path))["main"]()
    assert found["solved"]
    assert found["turned"] > 3.0
    assert abs(found["lean"]) < 0.02
    assert 2.999 < found["torque"] < 3.0 + 1e-6
    assert found["gap"] < 1e-8
    assert found["error"] < 1e-3
    assert "solved: gap" in capsys.readouterr().out
