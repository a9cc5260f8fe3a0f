"""The example of stiff servos shows what it promises."""

import pytest
from support.examples import example


@pytest.mark.long
def test_servos_keep_to_the_circle_as_well_as_motors():
    names = example(36)
    assert "You will see" in names["__doc__"]
    errors = names["main"]()
    for delay in (0, 1):
        assert errors["motors", delay] < 1.0
        assert errors["servos", delay] < 1.0
        assert errors["servos, force at the start", delay] > 20.0
