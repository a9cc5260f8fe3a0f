"""The examples of A16's and L15's laws say what they show, run, and draw it."""

import numpy as np
import pytest
from support.examples import shown

FIGURES = [(0.44, 10.13), (2.88, 4.90), (-8.00, -4.43), (4.63, 9.67), (-4.16, 0.46), (-5.11, 0.18)]
LEAST = [(0, 8.23), (0, 4.49), (-8.23, -4.46), (4.46, 8.23), (-4.49, 0), (-8.23, 0)]
IN_A_SOFT_LOOP = 0.015  # N m: last digit, control held over a period, soft closure


@pytest.mark.long
def test_the_regulator_lifts_the_bar_where_friction_is_weak_and_does_not_where_it_is_strong(
    tmp_path,
):
    names, runs = shown(13, tmp_path)
    end = {sigma: run.recording.q[-1, 7] for sigma, run in runs.items()}
    start, goal = 0.42, 0.42 + names["LIFT"][1]
    assert abs(end[0.5] - goal) < 0.1 * (goal - start)
    assert abs(end[1.5] - start) < 0.4 * (goal - start)
    run = runs[0.5]
    assert set(run.recording.status) <= {0, 1}
    assert len(np.unique(run.recording.mask, axis=0)) == 2
    assert run.recording.closure[-1] < 1e-4  # m


@pytest.mark.long
def test_both_laws_need_the_torques_of_the_errata_in_mujoco_and_stand_errors(tmp_path):
    _, runs = shown(14, tmp_path)
    for form, published in (("figures", FIGURES), ("least_norm", LEAST)):
        u = runs[form, "as modelled"].recording.u
        for i, (low, high) in enumerate(published):
            found = (u[:, i].min(), u[:, i].max())
            assert found == pytest.approx((low, high), abs=IN_A_SOFT_LOOP), f"{form} u{i + 1}"
        assert runs[form, "as modelled"].metric("tracking.rms") < 1e-4  # m, rad
        wrong = runs[form, "with errors"]
        assert 1e-4 < wrong.metric("tracking.rms") < 5e-3
        assert set(wrong.recording.status) == {0}
        assert wrong.recording.closure.max() < 1e-4  # m


@pytest.mark.long
def test_two_arms_take_the_bar_and_carry_it_along_its_path(tmp_path):
    names, run = shown(15, tmp_path)
    off = {row.name: row for row in run.tracking}
    for name in ("bar_x", "bar_z", "bar_angle", "left_x", "right_z"):
        assert off[name].rms < 0.005, name  # m, rad, with the push and the late grasp
    r = run.recording
    assert set(r.status) == {0}
    assert np.ptp(r.q[:, 7]) > 0.9 * names["LIFT"][1]
    assert r.closure[r.t > names["GRASP"] + 0.1].max() < 1e-4  # m
    pushed = (r.t > names["PUSHED"][0]) & (r.t < names["PUSHED"][1])
    assert np.abs(r.disturbance[pushed]).max() == -names["PUSH"]
