"""Logs of robots: three formats say the same, and an estimator on a log says what it said live."""

import json

import numpy as np
import pytest
from mcap.writer import Writer
from mcap_ros2.writer import Writer as RosWriter
from numpy.testing import assert_allclose, assert_array_equal

import mbcasadi as mb
from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError
from mbcasadi.estimation import (
    Channel,
    Measured,
    SensorLog,
    estimate_log,
    logged_inputs,
    manifold_filter,
    read_log,
)
from mbcasadi.validation import ReportOptions, Sensing, SensorErrors

JOINT_STATE = """std_msgs/Header header
string[] name
float64[] position
float64[] velocity
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
T = 3 + np.array([0.0, 0.25, 0.5, 0.75])
X = np.array([[1.0, -2.0], [1.5, -2.5], [np.nan, -3.0], [2.5, -3.5]])  # of hip and knee


def in_csv(path):
    rows = [",".join("" if np.isnan(x) else repr(float(x)) for x in row) for row in X]
    lines = [f"{int(t * 1e9)},{row}" for t, row in zip(T, rows, strict=True)]
    path.write_text("\n".join(["stamp [ns],hip [rad],knee [rad]", *lines]))
    return read_log(path, time="stamp", unit=1e-9)


def in_npz(path):
    columns = json.dumps({"position": {"names": ["hip", "knee"]}})
    np.savez(path, t=T, position=X, columns=np.array(columns), other=np.zeros(7))
    return read_log(path)


def in_ros(path):
    with path.open("wb") as file:
        writer = RosWriter(file)
        schema = writer.register_msgdef("sensor_msgs/msg/JointState", JOINT_STATE)
        for t, row in zip(T, X, strict=True):
            stamp = {"sec": int(t), "nanosec": int((t % 1) * 1e9)}
            message = {"header": {"stamp": stamp, "frame_id": ""}, "name": ["hip", "knee"]}
            message |= {"position": row.tolist(), "velocity": []}
            writer.write_message("/joints", schema, message, log_time=int((t + 9) * 1e9))
        writer.finish()
    return read_log(path)


def in_json(path):
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("legs", "jsonschema", b"{}")
        channel = writer.register_channel("legs", "json", schema)
        for t, row in zip(T, X, strict=True):
            data = {"hip": row[0] if row[0] == row[0] else None, "knee": {"position": row[1]}}
            data |= {"label": "text", "on": True}
            writer.add_message(channel, int(t * 1e9), json.dumps(data).encode(), int(t * 1e9))
        writer.finish()
    return read_log(path)


@pytest.mark.parametrize(
    ("read", "name", "knee"),
    [
        (in_csv, "log.csv", "knee"),
        (in_npz, "log.npz", "position.knee"),
        (in_ros, "log.mcap", "/joints.position.knee"),
        (in_json, "log.mcap", "legs.knee.position"),
    ],
)
def test_all_formats_have_the_same_samples(read, name, knee, tmp_path):
    log = read(tmp_path / name)
    hip, knee = log.samples("hip"), log.samples(knee)
    there = ~np.isnan(hip[1])
    assert_allclose(hip[0][there], T[[0, 1, 3]], rtol=0, atol=1e-9)
    assert_array_equal(hip[1][there], X[[0, 1, 3], 0])
    assert_allclose(knee[0], T, rtol=0, atol=1e-9)
    assert_array_equal(knee[1], X[:, 1])


@pytest.mark.parametrize(
    ("name", "content", "options", "error", "text"),
    [
        ("a.txt", b"", {}, ProblemError, "ends with .csv, .npz, .mcap"),
        ("a.csv", None, {}, ProblemError, "there is no file"),
        ("a.csv", b"time,x\n0,1\n", {}, UnknownNameError, "column of times 't'"),
        ("a.csv", b"t,x\n0,1\n1,2,3\n", {}, ProblemError, "row 3 has 3 entries"),
        ("a.csv", b"t,x,x\n0,1,2\n", {}, ProblemError, "several columns 'x'"),
        ("a.csv", b"t,x\n0,1\n1,abc\n", {}, ProblemError, "'x' has 'abc' in row 3"),
        ("a.csv", b"t,x\n1,1\n0,2\n", {}, ProblemError, "times of channel 'x' fall"),
        ("a.csv", b"t,x\n,1\n0,2\n", {}, ShapeError, "times of channel 'x' hold NaN"),
        ("a.csv", b"t\n1\n", {}, ProblemError, "no channels"),
        ("a.csv", b"t,x\n1,2\n", {"unit": 0.0}, ProblemError, "unit"),
        ("a.npz", b"no archive", {}, ProblemError, "is no log"),
        ("a.mcap", b"no messages", {}, ProblemError, "is no log"),
    ],
)
def test_what_is_no_log_is_an_error(name, content, options, error, text, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=text):
        read_log(tmp_path / name, **options)


def test_increments_are_means_over_a_tick_and_other_samples_the_last_ones():
    """Of a gyroscope at 4 kHz and an encoder at 500 Hz, to ticks of 1 ms; the control is held."""
    system = mb.read_mjcf(mb.models.path("cart_pole"))
    sensors = [
        Measured(system.tree.joints[0].name, 1e-3, kind="position"),
        Measured(system.tree.joints[0].name, 1e-3, kind="rate", density=True),
    ]
    estimator = manifold_filter(system, sensors, force_noise=0.1)
    joint = system.tree.joints[0].name
    fast, slow = np.arange(0, 0.0105, 2.5e-4), np.arange(0, 0.0105, 2e-3)
    log = SensorLog(
        {
            "encoder": (slow, np.rad2deg(slow)),
            "gyro": (fast, fast**2),
            f"u.{joint}": (np.array([0.0, 0.0045]), np.array([1.0, 2.0])),
        }
    )
    channels = {f"y.{joint}": Channel("encoder", scale=np.pi / 180), f"{joint}.rate": "gyro"}
    logged = logged_inputs(estimator, log, channels=channels)
    assert_allclose(logged.t, 1e-3 * np.arange(1, 11), rtol=0, atol=1e-12)
    assert_allclose(logged.inputs["dt"], 1e-3, rtol=1e-9)
    y = logged.inputs["y"]
    assert_array_equal(np.isnan(y[:, 0]), [True, False] * 5)
    assert_allclose(y[1::2, 0], slow[1:], rtol=1e-12)
    means = [(fast[4 * k + 1 : 4 * k + 5] ** 2).mean() for k in range(10)]
    assert_allclose(y[:, 1], means, rtol=1e-9)
    assert_array_equal(logged.inputs["u"].ravel(), [1] * 5 + [2] * 5)
    since_1970 = SensorLog({name: (t + 1.7e9, x) for name, (t, x) in log.channels.items()})
    later = logged_inputs(estimator, since_1970, channels=channels).inputs
    for name, values in logged.inputs.items():
        assert_allclose(later[name], values, rtol=0, atol=1e-6, err_msg=name)
    said = estimate_log(estimator, logged)
    assert np.all(np.isfinite(said.q))
    assert not said.status[-1]
    apart = SensorLog({**log.channels, "encoder": (slow + 5, slow)})
    for bad, error, text in (
        ({f"y.{joint}": "encodr"}, UnknownNameError, "did you mean 'encoder'"),
        ({joint: "encoder"}, ProblemError, f"component of y and u; expected one of 'y.{joint}'"),
        ({"hip": "encoder"}, UnknownNameError, "component of the inputs"),
        ({}, UnknownNameError, "channels={"),
    ):
        with pytest.raises(error, match=text):
            logged_inputs(estimator, log, channels=bad)
    with pytest.raises(ProblemError, match="in common"):
        logged_inputs(estimator, apart, channels=channels)
    other = manifold_filter(system, sensors[:1], force_noise=0.1)
    with pytest.raises(ProblemError, match="those of 'manifold_filter'"):
        estimate_log(other, logged)


def test_a_recording_of_validate_is_a_log_on_which_the_estimator_says_the_same(tmp_path):
    path = mb.models.path("four_bar")
    system = mb.read_mjcf(path)
    crank = system.tree.joints[0].name
    encoder = Measured(crank, 1e-3, kind="position", longest_delay=0.01)
    estimator = manifold_filter(system, [encoder], force_noise=0.3, period=2e-3)
    law = mb.control.laws.computed_torque(
        system,
        mb.control.PostureTask(kp=50.0),
        options=mb.control.laws.LawOptions(period=2e-3),
    )
    sensors = Sensing(estimator, {"position": SensorErrors(missing=0.1, delay=3)})
    options = ReportOptions(explain=False)
    report = mb.validate(law, path, 0.2, sensors=sensors, report=options)
    recording = report.runs[0].recording
    mb.validation.save_recording(recording, tmp_path / "run.npz")
    log = read_log(tmp_path / "run.npz")
    held = {f"u.{u}": f"u_applied.{u}" for u in recording.columns["u"].names}
    channels = {f"{name}.{crank}": f"monitor.estimate_{name}.{crank}" for name in ("y", "age")}
    channels |= held
    said = estimate_log(estimator, logged_inputs(estimator, log, channels=channels))
    assert np.isnan(recording.monitor["estimate_y"]).any()
    assert recording.monitor["estimate_age"].max() > 5e-3, "samples are late"
    same = slice(10, None)  # what acted before the first tick is in no log
    assert_allclose(said.q[same], recording.monitor["estimate_q"][same], rtol=0, atol=1e-9)
    errors = said.errors(system, recording.q, recording.v)
    assert_allclose(errors[same], recording.monitor["estimate_error"][same], rtol=0, atol=1e-9)
