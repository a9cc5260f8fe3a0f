"""The example of identification shows what it promises."""

import pytest
from support.examples import shown

from mbcasadi.plots import curves_of


@pytest.mark.long
def test_a_robot_with_wrong_masses_is_identified(tmp_path):
    names, results = shown(42, tmp_path)
    found, error = results["identification"], results["error"]
    assert len(found.base) == 17
    assert not found.undetermined
    assert error["CAD"] > 15  # percent
    assert error["identified"] < 1
    assert error["identified"] < error["CAD"] / 20
    assert names["curves_of"] is curves_of
