"""Quadratic cones: the objective, a and p are those of Clarabel on the full problem."""

import pytest

from campaign.cones import compare, cone_case
from campaign.run import SEED
from campaign.states import draw_inputs

STATES = {"quadruped": 40, "go2": 20}  # more, and humanoids: python -m campaign.cones


@pytest.mark.parametrize("name", STATES)
@pytest.mark.every(2)
def test_the_answer_is_that_of_clarabel(name):
    case, found, on_cone, solved = cone_case(name), [], 0, 0
    for number in range(STATES[name]):
        inputs = draw_inputs(case, number, SEED)
        assert inputs is not None, f"{name} {number}: no closed pose"
        each = compare(case, inputs)
        found += [(number, each.finding)] if each.finding else []
        on_cone, solved = on_cone + each.on_cone, solved + (each.status == 0)
    assert not found
    assert solved >= STATES[name] / 2
    assert on_cone >= STATES[name]  # at least one contact at the limit of friction
