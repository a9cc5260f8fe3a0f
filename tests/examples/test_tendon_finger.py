"""The example of the finger shows what it promises."""

import numpy as np
import pytest
from support.examples import shown

from mbcasadi.mjcf.compat import VERSION

SETTLED = 5e-3  # rad; a mass error of 10 % and a tick of delay leave about half of it


@pytest.mark.skipif(VERSION < (4, 0), reason="before 4.0 rounding chooses the way of its tendons")
@pytest.mark.long
def test_a_finger_closes_by_tendons_that_only_pull(tmp_path):
    names, found = shown(39, tmp_path)
    q, closed = found["q"], names["CLOSED"]
    assert np.abs(q[0] - names["OPEN"]).max() < 1e-12
    assert np.abs(q - closed).max(axis=1).min() < SETTLED  # it was closed once
    assert np.abs(q[-1] - names["OPEN"]).max() < SETTLED
    assert found["rms"] < SETTLED
    assert found["largest"] < 2 * SETTLED
    assert found["u"].min() >= 0.0
    assert 3.0 < found["u"].max() < 20.0
