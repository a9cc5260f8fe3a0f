"""The examples of inverse dynamics do what their first lines say."""

import pytest
from support.examples import example


def test_the_four_bar_reaches_its_torque_limit_and_never_passes_it(capsys):
    figures = example(1)["main"]()
    assert figures["torque"] == pytest.approx(1.5)
    assert figures["torque"] <= 1.5
    assert 0.05 < figures["saturated"] < 0.9
    assert "at most 1.500 N m" in capsys.readouterr().out


def test_the_quadruped_stands_on_four_feet_on_three_and_says_why_it_cannot(capsys):
    found = example(2)["main"]()
    assert found["four"].solved
    assert found["three"].solved
    assert found["three"].contact_forces[0, 0] == 0.0
    assert (found["three"].contact_forces[1:, 0] > 2.0 - 1e-4).all()
    assert found["pressed"].status == 2
    assert "actuator 'FL_thigh': force range" in capsys.readouterr().out
