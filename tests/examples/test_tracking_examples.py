"""The example of laws that track a trajectory shows what it promises."""

import numpy as np
import pytest
from support.examples import shown

INSIDE = 1e-6  # solvers widen bounds by 1e-8 of their size
CLOSED = 1e-9  # m


@pytest.mark.long
def test_a_flying_lap_is_tracked_better_by_laws_that_look_ahead(tmp_path):
    names, runs = shown(28, tmp_path)
    lap = runs["lap"]
    assert lap.solved
    assert lap.trajectory.drift.max() < CLOSED
    assert lap.t[-1] < 0.75 * names["GUESSED"]
    assert np.abs(lap.q[-1] - lap.q[0]).max() < INSIDE
    assert np.abs(lap.v[-1] - lap.v[0]).max() < INSIDE
    assert abs(np.abs(lap.u).max() - names["PLANNED"].u[0][1]) < INSIDE
    for name, most in (("LQR", 0.025), ("linear MPC", 0.02), ("MPC", 0.02)):
        found = runs[name]
        assert 1e-3 < found["off"].max() < most, name
        assert np.abs(found["u"]).max() <= names["LIMITS"][0][1]
    for name in ("linear MPC", "MPC"):
        assert runs[name]["cost"] < 0.9 * runs["LQR"]["cost"]
