"""The quadruped trots as commanded, with plans of all its joints, heavier, late and pushed."""

import numpy as np
import pytest
from support.examples import shown


@pytest.mark.long
def test_the_quadruped_trots_at_its_speed_turns_and_withstands_a_push(tmp_path):
    names, done = shown(43, tmp_path)  # once: it takes longer than all that is said about it
    it_goes_as_commanded(names, done["said"])
    the_push_throws_it_and_it_comes_back(names, done["found"])
    all_is_solved_and_within_limits(done)
    feet_lift_in_pairs_and_forces_are_in_their_cones(names, done["found"])


def it_goes_as_commanded(names, said):
    assert said["speed"] == pytest.approx(names["SPEED"], abs=0.05)
    assert said["curve"] == pytest.approx(names["SPEED"], abs=0.05)
    assert said["turn"] == pytest.approx(names["TURN"], abs=0.03)
    assert abs(said["low"]) < 15.0  # mm
    assert said["lean"] < 100.0  # mrad


def the_push_throws_it_and_it_comes_back(names, found):
    side, (begin, end) = np.abs(found.v[:, 1]), names["PUSHED"]
    assert side[(found.t > begin) & (found.t < end + 0.1)].max() > 0.5  # m/s
    assert side[(found.t > end + 1.0) & (found.t < names["TURNS"])].max() < 0.2


def all_is_solved_and_within_limits(done):
    found, status = done["found"], np.ravel(done["plans"]["status"])
    assert np.all(found.status == 0)
    assert np.mean(status == 0) > 0.99
    assert status.max() < 2


def feet_lift_in_pairs_and_forces_are_in_their_cones(names, found):
    trotting = found.t > 1.0
    on, height = found.mask[trotting], found.contact_position[trotting, :, 2]
    np.testing.assert_array_equal(on[:, 0], on[:, 3])
    np.testing.assert_array_equal(on[:, 1], on[:, 2])
    assert 0.4 < (on[:, 0] < 0.5).mean() < 0.5
    assert np.all(np.ptp(height, axis=0) > 0.03)
    loaded = (found.mask > 0.5) & (found.contact_normal > 5.0)
    friction = found.contact_tangential[loaded] / found.contact_normal[loaded]
    assert (
        np.mean(friction < names["MU"]) > 0.93
    )  # the floor has 0.8, for feet that land with speed
