"""The examples of inverse dynamics do what their first lines say."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_four_bar_reaches_its_torque_limit_and_never_passes_it(capsys):
    figures = runpy.run_path(str(EXAMPLES / "01_inverse_dynamics_of_a_four_bar.py"))["main"]()
    assert figures["torque"] == pytest.approx(1.5)
    assert figures["torque"] <= 1.5
    assert 0.05 < figures["saturated"] < 0.9
    assert "at most 1.500 N m" in capsys.readouterr().out


def test_the_quadruped_stands_on_four_feet_on_three_and_says_why_it_cannot(capsys):
    found = runpy.run_path(str(EXAMPLES / "02_a_quadruped_lifts_a_foot.py"))["main"]()
    assert found["four"].solved
    assert found["three"].solved
    assert found["three"].contact_forces[0, 0] == 0.0
    assert (found["three"].contact_forces[1:, 0] > 2.0 - 1e-4).all()
    assert found["pressed"].status == 2
    assert "actuator 'FL_thigh': force range" in capsys.readouterr().out
