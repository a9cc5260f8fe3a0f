"""The examples of trajectory optimisation show what they promise."""

import numpy as np
import pytest
from support.examples import example, shown

INSIDE = 1e-6  # solvers widen bounds by 1e-8 of their size
CLOSED = 1e-9  # m


@pytest.mark.long
def test_a_five_bar_falls_through_a_singularity(tmp_path):
    names, line = shown(37, tmp_path)
    assert line["needed"] > 5 * names["LIMIT"]
    assert line["measure"].min() < -0.1  # it crosses zero
    assert line["off"].max() > 0.1
    assert np.abs(line["u"]).max() == names["LIMIT"]


@pytest.mark.long
def test_a_five_bar_goes_around_a_singularity(tmp_path):
    names, around = shown(27, tmp_path)
    plan = around["plan"]
    assert plan.solved
    assert plan.trajectory.drift.max() < CLOSED
    assert plan.t[-1] < 0.6
    assert np.abs(plan.u).max() < names["TORQUE"] + INSIDE
    assert abs(around["planned"].min() - names["LEAST"]) < INSIDE  # the row counts
    assert around["measure"].min() > names["LEAST"] - 0.05
    assert around["off"].max() < 0.02
    assert around["off"][-1] < 0.005


@pytest.mark.long
def test_a_pendulum_swings_up_on_a_four_bar_within_the_motors_limit(capsys):
    actual = example(25)["main"]()
    assert actual["solved"]
    assert actual["turned"] > 3.0
    assert abs(actual["lean"]) < 0.02
    assert 2.999 < actual["torque"] < 3.0 + 1e-6
    assert actual["gap"] < 1e-8
    assert actual["error"] < 1e-3
    assert "solved: gap" in capsys.readouterr().out
