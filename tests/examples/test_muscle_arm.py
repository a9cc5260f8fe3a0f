"""The example of the muscle arm shows what it promises."""

import numpy as np
import pytest
from support.examples import example


@pytest.mark.long
def test_an_arm_with_muscles_is_linearised_and_held_with_a_load():
    names = example(41)
    found = names["main"]()
    assert found["linear"].nx == 8
    assert np.all(found["linear"].u > 0.05)  # all muscles have some tone
    errors = found["errors"]
    assert errors["lqr", False] < 1e-3
    assert errors["lqr", True] < 1e-3
    assert errors["mpc", False] < 1e-3
    assert 1e-3 < errors["mpc", True] < 5e-2  # no sum: it yields to the load
