"""MPC against MuJoCo as generated C: more mass, one tick of delay, pushes."""

import numpy as np
import pytest
from support.examples import shown

TIPPED = 1.0  # rad: a pendulum that leans more has fallen
LYING = 1.0  # m that the hip of the biped has come down, of 1.6 m


def assert_sound(run, solved=1.0):
    """Assert that a run ended, kept the motors' limits, was late, and solved its problems."""
    record, controller = run.recording, run.controller
    assert not record.events
    assert controller.delay == 1
    np.testing.assert_array_equal(record.u_applied[1:], record.u[:-1])
    assert np.all((record.u >= controller.u_min) & (record.u <= controller.u_max))
    assert np.mean(record.status == 0) >= solved


@pytest.mark.long
def test_a_cart_pole_swings_up_holds_and_gets_up_again(tmp_path):
    names, runs = shown(29, tmp_path)
    assert len(runs) == 3
    for found in runs.values():
        assert_sound(found["run"], solved=0.98)
        t, away = found["t"], np.abs(found["lean"])
        pushed, later = names["PUSHED"], names["KNOCKED"]
        assert away[0] > 3.1
        assert away[(t > pushed - 0.5) & (t < pushed)].max() < 0.05
        assert 0.3 < away[(t > pushed) & (t < later)].max() < TIPPED
        assert away[t > later].max() > 3.0
        assert away[-1] < 5e-3


@pytest.mark.long
def test_a_pendulum_swings_up_on_a_four_bar_and_its_plan_alone_does_not(tmp_path):
    _, runs = shown(30, tmp_path)
    leans = {name: found["lean"] for name, found in runs.items()}
    late = {name: found["t"] > 2.0 for name, found in runs.items()}
    for name in ("as modelled", "with errors"):
        assert_sound(runs[name]["run"])
        assert leans[name][0] > 3.1
        assert abs(leans[name][-1]) < 5e-3
        assert np.abs(leans[name][late[name]]).max() < 0.3
    assert np.abs(leans["with errors"][late["with errors"]]).max() > 0.1
    assert np.abs(leans["plan alone"][late["plan alone"]]).max() > TIPPED


@pytest.mark.long
def test_a_slider_crank_keeps_its_speed_through_singular_poses(tmp_path):
    names, found = shown(31, tmp_path)
    for name, largest in (("as modelled", 0.01), ("with errors", 0.06), ("too fast", 0.15)):
        run, off = found[name]["run"], found[name]["angle"]
        assert_sound(run)
        passed = np.flatnonzero(np.diff(np.sign(run.recording.q[:, 1])))
        assert passed.size >= 4
        assert np.abs(off).max() < largest
        pushed = (run.recording.t >= names["PUSHED"][0]) & (run.recording.t < names["PUSHED"][1])
        crossed = np.sign(run.recording.q[pushed, 1])
        assert {crossed[0], crossed[-1]} == {-1, 1} or name == "too fast"
        branch = run.recording.q[:, 1] - 2 * np.cos(run.recording.q[:, 0])
        assert np.abs(branch).max() < 0.05
    errors = found["with errors"]
    assert np.abs(errors["angle"][errors["t"] > 3.5]).max() < 0.01
    run = found["too fast"]["run"]
    assert np.mean(np.abs(run.recording.u) == run.controller.u_max) > 0.2


@pytest.mark.long
def test_a_biped_that_knows_its_feet_recovers_where_others_fall(tmp_path):
    _, runs = shown(32, tmp_path)
    for name, found in runs.items():
        run, forwards = found["run"], "+220 N" in name
        hip, down, lean = np.abs(run.recording.q[:, :3] - run.recording.q[0, :3]).T
        if "feet" in name:
            assert_sound(run)
            assert lean.max() < 0.2
            assert hip[-1] < 0.02
            assert down.max() < 0.02
        elif forwards or name.startswith("LQR,"):
            assert down.max() > LYING  # which way it leans then is a matter of rounding


@pytest.mark.long
def test_two_robots_lift_a_bar_within_torques_and_rates(tmp_path):
    names, found = shown(33, tmp_path)
    for name, busy in (("as modelled", 0.0), ("with errors", 0.1)):
        run, off = found[name]["run"], found[name]["off"]
        assert_sound(run)
        change = np.abs(np.diff(run.recording.u, axis=0))
        assert change.max() <= names["CHANGE"] * (1 + 1e-9)
        assert np.mean(np.any(change > 0.999 * names["CHANGE"], axis=1)) >= busy
        assert np.abs(off[:, -1]).max() < 5.0
    assert np.abs(found["as modelled"]["off"]).max() < 1.0
    used = np.abs(found["with errors"]["run"].recording.u).max(axis=0)
    assert used.max() > 0.999 * names["TORQUE"]
