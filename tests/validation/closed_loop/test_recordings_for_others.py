"""Recordings for other programs: data frames of pandas, and MCAP read by its own reader."""

import sys
from dataclasses import replace

import numpy as np
import pandas
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from mbcasadi import models
from mbcasadi.errors import MissingExtraError, ProblemError
from mbcasadi.estimation import read_log
from mbcasadi.validation import (
    Campaign,
    Case,
    Metric,
    Outcome,
    Verdict,
    load_recording,
    save_recording,
    validate,
)


def push(t, q, v):
    return 0.1 * np.arange(12) * np.sin(9 * t)


@pytest.fixture(scope="module")
def recording():
    """Return some ticks of the quadruped, with forces and places of two contacts."""
    run = validate(push, models.path("quadruped"), 0.02).runs[0].recording
    force = np.random.default_rng(0).normal(size=(run.ticks, 2, 3))
    one = np.zeros((run.ticks, 2))
    return replace(
        run, events=("it fell",), contact_names=("FL", "FR"), contact_force=force,
        contact_position=2 * force, contact_normal=one, contact_tangential=one,
        contact_margin=one, contact_capacity=one,
    )  # fmt: skip


def test_a_data_frame_has_the_columns_of_the_csv(recording, tmp_path):
    frame = recording.to_dataframe()
    assert frame.index.name == "t [s]"
    np.testing.assert_array_equal(frame.index, recording.t)
    table = pandas.read_csv(save_recording(recording, tmp_path / "run.csv")).drop(
        columns=["t [s]", "events []"]
    )
    assert list(frame.columns) == list(table.columns)
    np.testing.assert_array_equal(frame.to_numpy(float), table.to_numpy(float))
    np.testing.assert_array_equal(frame["v.FL_calf [rad/s]"], recording.v[:, 8])
    assert frame.attrs["events"] == ["it fell"]


@pytest.fixture(scope="module")
def messages(recording, tmp_path_factory):
    path = recording.to_mcap(tmp_path_factory.mktemp("log") / "run.mcap")
    collected = {}
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for schema, channel, message, content in reader.iter_decoded_messages():
            assert schema.encoding == "ros2msg"
            collected.setdefault(channel.topic, []).append((message.log_time, content))
    return path, collected


def test_joint_states_are_those_of_the_recording(recording, messages):
    rows = messages[1]["/joint_states"]
    assert len(rows) == recording.ticks
    for k, (stamp, state) in enumerate(rows):
        assert stamp == round(recording.t[k] * 1e9)
        assert (state.header.stamp.sec, state.header.stamp.nanosec) == divmod(stamp, 10**9)
        assert list(state.name) == list(recording.columns["q"].names[7:])
        np.testing.assert_array_equal(state.position, recording.q[k, 7:])
        np.testing.assert_array_equal(state.velocity, recording.v[k, 6:])
        np.testing.assert_array_equal(state.effort, recording.actuator_force[k, 6:])
    assert np.abs(recording.actuator_force[:, 6:]).max() > 1e-3


def test_the_base_is_a_transform_and_contacts_are_wrenches(recording, messages):
    for k, (_, message) in enumerate(messages[1]["/tf"]):
        base, left, _ = message.transforms
        p, q = base.transform.translation, base.transform.rotation
        np.testing.assert_array_equal([p.x, p.y, p.z, q.w, q.x, q.y, q.z], recording.q[k, :7])
        assert base.header.frame_id == "world"
        p = left.transform.translation
        np.testing.assert_array_equal([p.x, p.y, p.z], recording.contact_position[k, 0])
        assert left.child_frame_id == messages[1]["/contact/FL"][k][1].header.frame_id
        f = messages[1]["/contact/FR"][k][1].wrench.force
        np.testing.assert_array_equal([f.x, f.y, f.z], recording.contact_force[k, 1])


def test_every_field_is_there_and_our_own_reader_finds_it(recording, messages):
    log = read_log(messages[0])
    t, knee = log.samples("/recording/v.value.FL_calf")
    np.testing.assert_allclose(t, recording.t, atol=1e-9)
    np.testing.assert_array_equal(knee, recording.v[:, 8])
    np.testing.assert_array_equal(log.samples("/recording/u.value.FL_calf")[1], recording.u[:, 2])
    unit = messages[1]["/recording/energy"][0][1]
    assert (list(unit.name), list(unit.unit)) == (["energy"], ["J"])
    np.testing.assert_array_equal(unit.value, recording.energy[:1])


def test_a_folder_that_is_not_there_and_missing_packages_are_named(
    recording, tmp_path, monkeypatch
):
    with pytest.raises(ProblemError, match="there is no folder"):
        recording.to_mcap(tmp_path / "none" / "run.mcap")
    monkeypatch.setitem(sys.modules, "mcap_ros2.writer", None)
    with pytest.raises(MissingExtraError, match=r"mbcasadi\[mcap\]"):
        recording.to_mcap(tmp_path / "run.mcap")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"mbcasadi\[frames\]"):
        recording.to_dataframe()
    assert load_recording(save_recording(recording, tmp_path / "run.npz")).ticks


def test_a_campaign_is_a_row_for_each_case():
    outcomes = (
        Outcome(3, Case(1, {"mass": 0.1}, delay=2), (Metric("tracking.max:crank", 0.2, "rad"),),
                (Verdict("tracking.max", 0.2, 0.1, False, False),), ()),
        Outcome(5, Case(2, {"friction": -0.2}), (Metric("status.solved", 0.9),),
                (Verdict("finished", 1.0, 1.0, True, True),), ()),
    )  # fmt: skip
    frame = Campaign(outcomes, 2).to_dataframe()
    assert list(frame.index) == [3, 5]
    assert frame.index.name == "case"
    np.testing.assert_array_equal(frame["mass"], [0.1, 0.0])
    np.testing.assert_array_equal(frame["delay [ticks]"], [2, 0])
    np.testing.assert_array_equal(frame["tracking.max:crank [rad]"], [0.2, np.nan])
    np.testing.assert_array_equal(frame["status.solved"], [np.nan, 0.9])
    assert list(frame["passed"]) == [o.passed for o in outcomes]
    assert list(frame["failed"]) == ["tracking.max", ""]
