"""The noise of a four-bar and its encoder is found in a log."""

import pytest
from support.examples import example, results


@pytest.mark.long
def test_bounds_hold_after_the_noise_is_fitted(tmp_path):
    names = example(46)
    names["main"].__globals__["DURATION"] = 0.6  # s of the three that the pictures have
    inside = results(names, tmp_path)
    assert inside["before"] < 0.8
    assert inside["after"] > 0.98
