"""The projected dynamics of a redundant loop inside an optimal control problem."""

import pytest
from support.examples import example

DISCRETISATION = 1e-3  # m; the midpoint rule at 10 ms leaves the manifold by O(step²)


@pytest.mark.long
def test_ipopt_swings_the_four_bar_within_its_torque_limit_and_keeps_the_loop_closed():
    figures = example(3)["main"]()
    assert figures["crank"] == pytest.approx(1.5, abs=1e-6)
    assert 0.05 < figures["torque"] < figures["limit"]
    assert figures["gap"] < DISCRETISATION
