"""How much of a rate of the rows is a loss of rank."""

import casadi as ca
import pytest

from mbcasadi.formulation.branch import loses_rank_along
from mbcasadi.linalg import complete_factor


@pytest.mark.parametrize(("share", "lost"), [(1e-5, True), (1e-8, False)])
def test_a_row_that_vanishes_loses_rank_where_its_rate_is_more_than_rounding(share, lost):
    factor = complete_factor(ca.DM([[1, 0], [0, 0]]))
    assert bool(loses_rank_along(factor, ca.DM([[0, 1], [0, share]]))) == lost
