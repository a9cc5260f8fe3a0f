"""Examples of inverse dynamics and the page on linear models do what they say."""

import pytest
from support.examples import example
from support.pages import assert_blocks_print_what_they_show, assert_prints_what_it_says, blocks_of


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


PAGE = "guides/linearisation.md"
IMPORTS = "import numpy as np\nimport mbcasadi as mb\nfrom mbcasadi import models\n"


def test_linear_models_print_what_the_page_says():
    assert_prints_what_it_says(PAGE, 6, last="## S20's linear form")


def test_regulators_and_filters_print_what_the_page_says():
    blocks, names = blocks_of(PAGE, first="\n## LQR\n"), {}
    assert len(blocks) == 4
    exec(IMPORTS, names)
    assert_blocks_print_what_they_show(blocks, names)
