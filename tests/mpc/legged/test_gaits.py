"""Gaits as data: which feet stand, and when a walk begins and ends."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi import mpc
from mbcasadi.mpc.legged.gait import Walk

FEET = ("FL", "FR", "RL", "RR")
T = 0.8


def standing(gait, times):
    """Return (nt, feet) which feet stand."""
    return np.array([np.array(gait.on_ground(float(t))).ravel() for t in times], dtype=bool)


def test_a_walk_moves_one_foot_at_a_time_rear_feet_before_those_of_their_side():
    gait = mpc.walk(T, 0.8, start=0.3)
    times = 0.3 + np.arange(0.005, 3 * T, 0.01)
    on = standing(gait, times)
    assert on.sum(axis=1).min() == 3
    lifts = [FEET[i] for k in range(1, len(on)) for i in np.flatnonzero(on[k - 1] & ~on[k])]
    start = lifts.index("RL")
    assert lifts[start : start + 4] == ["RL", "FL", "RR", "FR"]


@pytest.mark.parametrize(
    ("make", "pairs"),
    [
        (mpc.trot, [{"FL", "RR"}, {"FR", "RL"}]),
        (mpc.pace, [{"FL", "RL"}, {"FR", "RR"}]),
        (mpc.bound, [{"FL", "FR"}, {"RL", "RR"}]),
        (mpc.pronk, [set(FEET), set()]),
    ],
)
def test_pairs_swing_together(make, pairs):
    on = standing(make(T, 0.5), np.arange(0.5 * T + 0.005, 4 * T, 0.01))
    swinging = {frozenset(np.array(FEET)[~row]) for row in on}
    assert swinging == {frozenset(pair) for pair in pairs}


@pytest.mark.parametrize("make", [mpc.walk, mpc.trot, mpc.pace, mpc.bound, mpc.pronk])
def test_no_foot_begins_in_the_middle_of_a_swing_and_none_is_cut_short(make):
    gait = make(T, 0.7, start=0.3)
    end = 0.3 + T * (2.7 - gait.offsets[0]) + 0.1  # in the middle of a swing of FL
    walk = Walk(gait, 0.3, end)
    on = standing(walk, np.arange(0.0, 4.0, 0.01) + 0.005)
    for foot in on.T:
        assert foot[:30].all()
        ends = np.flatnonzero(np.diff(foot.astype(int)))
        swings = 0.01 * (ends[1::2] - ends[::2])
        assert swings.size
        np.testing.assert_allclose(swings, gait.flight, atol=0.011)
    assert on[int((end + gait.flight) / 0.01) + 1 :].all()
    assert not on[int(end / 0.01), 0]
    t = ca.SX.sym("t")
    shares = ca.Function("shares", [t], [walk.swing_share(t), walk.on_ground(t)])
    for time in np.arange(0.0, 4.0, 0.013):
        share, stands = (np.array(x).ravel() for x in shares(time))
        assert not share[stands > 0].any()
