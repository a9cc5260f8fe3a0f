"""When a control counts as saturated."""

import casadi as ca
import pytest

from mbcasadi.qp.input_guard import is_saturated

SIZE = 1e4  # N m; the tolerance is relative to it


@pytest.mark.parametrize(
    ("excess", "saturated"), [(1e-8, 1), (1e-11, 0), (-1e-8, 1), (float("nan"), 0)]
)
def test_a_control_is_saturated_beyond_rounding_of_its_limit(excess, saturated):
    limited = ca.DM([SIZE, 0.0])
    assert float(is_saturated(limited * (1 + excess), limited)) == saturated
