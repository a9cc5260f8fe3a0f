"""The examples of trajectory optimisation show what they promise."""

import numpy as np
from support.examples import shown

INSIDE = 1e-6  # solvers widen bounds by 1e-8 of their size
CLOSED = 1e-9  # m


def test_a_five_bar_falls_through_a_singularity_and_goes_around_it(tmp_path):
    names, runs = shown(27, tmp_path)
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
