"""The demonstration: three controllers as generated C, each against MuJoCo."""

import numpy as np
import pytest

from mbcasadi.validation.demo import demo

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def runs():
    report = demo(render=False)
    assert report.passed, str(report)
    return report.runs


def test_the_four_bar_reaches_its_torque_limit_and_never_passes_it(runs):
    torque = np.abs(runs[0].recording.u).max(axis=1)
    assert torque.max() == 1.5
    assert 0.01 < np.mean(torque > 1.5 - 1e-9) < 0.2


def test_the_four_bar_closes_and_tracks_within_the_stated_figures(runs):
    assert runs[0].metric("tracking.rms_share_free") < 0.01
    assert runs[0].metric("closure.plant") < 1e-4


def test_the_quadruped_sways_in_a_plant_that_is_heavier_and_one_tick_late(runs):
    settings = runs[1].settings
    assert "mass" in str(settings)
    assert "1 tick" in str(settings)
    amplitudes = {row.name: row.amplitude for row in runs[1].tracking}
    for axis in "xyz":
        assert amplitudes[f"trunk.{axis}"] >= 0.039
        assert amplitudes[f"trunk.r{axis}"] >= np.deg2rad(7.8)
    assert runs[1].metric("status.safe_output") == 0


def test_the_mask_lifts_one_foot_in_the_same_c(runs):
    record = runs[1].recording
    foot = record.contact_names.index("FR")
    mask, normal = record.mask[:, foot], record.contact_normal[:, foot]
    assert set(np.unique(mask)) == {0.0, 1.0}
    down, up = np.flatnonzero(mask == 1.0), np.flatnonzero(mask == 0.0)
    sway = down[(record.t[down] > 1.0) & (record.t[down] < 5.0)]
    assert normal[sway].min() > 10.0  # N, of about 40
    air = up[len(up) // 4 : -len(up) // 4]
    assert normal[air].max() == 0.0
    assert (
        record.contact_position[air, foot, 2].max()
        > record.contact_position[sway, foot, 2].max() + 0.07
    )


def test_the_arm_follows_while_its_gripper_opens_and_closes(runs):
    assert runs[2].metric("tracking.rms_share") < 0.01
    assert runs[2].metric("status.safe_output") == 0
