"""The quadruped trots, turns and walks on a plant that is heavier, late and pushed."""

import numpy as np
import pytest
from support.examples import shown

FEET_LIFT = 0.04  # m; a swing is 0.06 m high


@pytest.mark.long
def test_the_quadruped_trots_turns_walks_and_recovers_from_a_push(tmp_path):
    names, done = shown(34, tmp_path)  # once: it takes longer than all that is said about it
    the_trunk_stays_up_turns_and_walks(names, done)
    feet_lift_in_pairs_and_do_not_slide(done)
    the_push_throws_it_and_it_comes_back(names, done)
    every_tick_of_both_laws_is_solved(done)


def the_trunk_stays_up_turns_and_walks(names, done):
    said, found = done["said"], done["found"]
    assert found.t[-1] > names["DURATION"] - 0.01
    assert said["height"] < 8.0  # mm
    assert said["roll"] < 10.0  # mrad
    assert said["pitch"] < 10.0
    assert said["turn"] == pytest.approx(names["TURN"], rel=0.05)
    assert said["turn"] > 0.3
    assert said["off"] < 0.1
    assert said["speed"] == pytest.approx(names["SPEED"], rel=0.15)
    assert names["TURNS"] > 3.0


def feet_lift_in_pairs_and_do_not_slide(done):
    found = done["found"]
    trotting = found.t > 1.0
    on, height = found.mask[trotting], found.contact_position[trotting, :, 2]
    np.testing.assert_array_equal(on[:, 0], on[:, 3])
    np.testing.assert_array_equal(on[:, 1], on[:, 2])
    assert 0.3 < (on[:, 0] < 0.5).mean() < 0.6
    assert np.all(np.ptp(height, axis=0) > FEET_LIFT)
    assert done["said"]["slip"] < 20.0  # mm, of which rolling of the sole takes its part
    assert done["said"]["held"] > 0.98


def the_push_throws_it_and_it_comes_back(names, done):
    found = done["found"]
    side = found.v[:, 1]
    hit = (found.t > names["PUSHED"][0]) & (found.t < names["PUSHED"][1] + 0.1)
    after = (found.t > names["PUSHED"][1] + 1.0) & (found.t < names["TURNS"])
    assert np.abs(side[hit]).max() > 0.25
    assert np.abs(side[after]).max() < 0.1
    place = found.q[after, :2] - found.q[0, :2]
    assert np.abs(place).max() < 0.05


def every_tick_of_both_laws_is_solved(done):
    assert np.mean(done["found"].status == 0) > 0.999
    assert not np.any(np.array(done["mpc"]["status"]))
    assert len(done["mpc"]["status"]) == 230
    forces = np.array(done["mpc"]["u"]).reshape(-1, 4, 3)
    assert forces[:, :, 2].min() > -1e-6
    assert np.abs(forces[:, :, :2]).max() > 10.0
