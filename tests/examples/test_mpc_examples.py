"""The examples of MPC show what they promise."""

import numpy as np
import pytest
from support.examples import shown


@pytest.mark.long
def test_a_four_bar_forgets_a_load_that_is_estimated(tmp_path):
    names, runs = shown(26, tmp_path)
    for found in runs.values():
        assert np.abs(found["u"]).max() == names["LIMIT"]
        assert abs(found["error"][0]) > 0.3
    assert abs(runs["plain"]["error"][-1]) > 0.02
    assert abs(runs["offset-free"]["error"][-1]) < 1e-3
