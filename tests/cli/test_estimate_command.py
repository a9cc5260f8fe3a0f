"""`mbcasadi estimate`: a log of a robot, an estimator of a file, states in a file."""

import json

import mujoco
import numpy as np
import pytest
from mcap.writer import Writer
from numpy.testing import assert_allclose
from support.tripod import LEGS, MODEL, PERIOD, START
from typer.testing import CliRunner

import mbcasadi as mb
from mbcasadi.cli.app import app
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.estimation import read_log
from mbcasadi.validation.spec import estimate_log_of_spec, parse_spec

SPEC = """
type = "lqr"
equilibrium = { q = [0.0, 0.0, 0.0] }
Q = { position = 100.0 }

[estimation]
type = "manifold"
force_noise = 0.02
options = { position = 0.01, speed = 0.5 }

[[estimation.sensor]]
name = "crank"
kind = "position"
noise = 2e-3

[estimation.log]
time = "stamp"
unit = 1e-9
channels = { "y.crank" = { name = "encoder", scale = 0.017453292519943295 }, "u.crank" = "torque" }
"""
TICKS = 300
HOLD = {
    "type": "inverse_dynamics_qp", "name": "hold", "period": PERIOD, "start": {"q": START.tolist()},
    "task": [{"type": "frame", "frame": "trunk", "kind": "body", "kp": 100.0}],
    "contact": [{"frame": leg, "friction": 0.7} for leg in LEGS],
    "estimation": {"type": "base", "imu": {"frame": "imu"}},
}  # fmt: skip


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return the file of a spec, the log of a four-bar in MuJoCo, and its true q and v."""
    folder, rng = tmp_path_factory.mktemp("log"), np.random.default_rng(0)
    (folder / "spec.toml").write_text(SPEC)
    model = mujoco.MjModel.from_xml_path(str(mb.models.path("four_bar")))
    data, step = mujoco.MjData(model), model.opt.timestep
    every, rows, truth = round(1e-3 / step), [], []
    for k in range(TICKS + 1):
        read = np.rad2deg(data.qpos[0] + 2e-3 * rng.standard_normal())
        data.ctrl[0] = 0.5 * np.sin(20 * k * 1e-3)
        lost = k % 7 == 3
        rows.append((round(1e9 + 1e6 * k), "" if lost else float(read), float(data.ctrl[0])))
        truth.append(np.concatenate([data.qpos, data.qvel]))
        mujoco.mj_step(model, data, every)
    text = "\n".join(f"{t},{read},{u}" for t, read, u in rows)
    (folder / "log.csv").write_text(f"stamp [ns],encoder [deg],torque [N m]\n{text}\n")
    return folder, np.array(truth)


def test_states_of_a_log_are_those_of_the_robot(recorded, tmp_path):
    folder, truth = recorded
    states, page = tmp_path / "states.csv", tmp_path / "log.html"
    given = ("estimate", "four_bar", folder / "log.csv", "-c", folder / "spec.toml", "--json")
    result = invoke(*given, "-o", states, "--report", page)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["ticks"] == TICKS + 1
    assert found["sensors"] == [{"name": "crank", "valid": pytest.approx(6 / 7, abs=0.01)}]
    assert found["innovations"][0]["rms"] == pytest.approx(1.0, abs=0.15)
    log = read_log(states)
    columns = [log.samples(f"{key}.{joint}") for key in "qv" for joint in ("crank", "rocker")]
    t, estimate = columns[0][0], np.array([x for _, x in columns]).T
    sigma = np.array([log.samples(name)[1] for name in log.channels if "deviation" in name]).T
    names = [name for name in log.channels if "deviation" in name]
    assert_allclose(t, 1 + 1e-3 * np.arange(TICKS + 1), rtol=0, atol=1e-9)
    late, error = slice(50, None), estimate - truth[:, [0, 2, 3, 5]]
    assert np.ptp(truth[:, 0]) > 0.05, "it moves"
    assert np.abs(error[late, :2]).max() < 4e-3, "two deviations of a sample"
    own = [names.index(n) for n in names if "crank" in n or "rocker" in n]
    assert np.mean(np.abs(error[late]) <= 3 * sigma[late][:, own]) > 0.95
    written = page.read_text(encoding="utf-8")
    assert "Innovations" in written
    assert "<svg" in written
    arrays = tmp_path / "states.npz"
    assert invoke(*given, "-o", arrays).exit_code == 0
    assert_allclose(read_log(arrays).samples("q.crank")[1], estimate[:, 0], rtol=0, atol=1e-15)


def test_an_mcap_log_of_today_says_what_that_of_a_csv_file_says(recorded, tmp_path):
    """Messages of an encoder where it has a sample, of the torque always; stamps since 1970."""
    folder, _ = recorded
    today = 1_700_000_000 * 10**9
    with (tmp_path / "log.mcap").open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("any", "jsonschema", b"{}")
        topics = [writer.register_channel(f"/{name}", "json", schema) for name in ("joint", "u")]
        for line in (folder / "log.csv").read_text().split("\n")[1:-1]:
            t, read, u = line.split(",")
            at = today + int(t)
            stamp = {"header": {"stamp": {"sec": at // 10**9, "nanosec": at % 10**9}}}
            for topic, values in zip(topics, ([read] if read else [], [u]), strict=True):
                if values:
                    message = stamp | {"name": ["crank"], "position": [float(values[0])]}
                    writer.add_message(topic, at, json.dumps(message).encode(), at)
        writer.finish()
    spec = SPEC.replace('time = "stamp"\nunit = 1e-9', "period = 1e-3")
    for name, topic in (("encoder", "joint"), ("torque", "u")):
        spec = spec.replace(f'"{name}"', f'"/{topic}.position.crank"')
    (tmp_path / "spec.toml").write_text(spec)
    states = {}
    for log, rules in ((folder / "log.csv", folder), (tmp_path / "log.mcap", tmp_path)):
        out = tmp_path / f"{log.suffix[1:]}.csv"
        result = invoke("estimate", "four_bar", log, "-c", rules / "spec.toml", "-o", out)
        assert result.exit_code == 0, result.output
        states[log.suffix] = read_log(out).samples("q.crank")
    (t, q), (later, found) = states.values()
    assert_allclose(later - 1.7e9, t[1:], rtol=0, atol=1e-6)
    assert_allclose(found[50:], q[51:], rtol=0, atol=2e-4, err_msg="a tenth of a sample's noise")


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("spec", ('"encoder", scale', '"encodr", scale'), "did you mean 'encoder'"),
        ("spec", ("unit = 1e-9", "unit = 1e-3"), "another unit"),
        ("spec", ('time = "stamp"', 'time = "t"'), "column of times 't'"),
        ("spec", ("[estimation]", "[estimaton]"), "'estimaton'"),
        ("log", ("\n1000000000,", "\nabc,"), "'stamp' has 'abc' in row 2"),
        ("log", ("encoder", "resolver"), "unknown channel 'encoder'; valid: 'resolver', 'torque'"),
    ],
)
def test_what_does_not_fit_is_said_in_a_line(recorded, tmp_path, name, change, words):
    folder, _ = recorded
    files = {"spec": "spec.toml", "log": "log.csv"}
    for each, file in files.items():
        text = (folder / file).read_text()
        (tmp_path / file).write_text(text.replace(*change, 1) if each == name else text)
    result = invoke("estimate", "four_bar", tmp_path / "log.csv", "-c", tmp_path / "spec.toml")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert words in result.stderr


@pytest.mark.long
def test_a_robot_that_stands_in_a_log_is_level_and_its_feet_carry_it(tmp_path):
    ticks, rng = 200, np.random.default_rng(1)
    y = {"gyro": 1e-3 * rng.standard_normal((ticks, 3))}
    y["accelerometer"] = [0.0, 0.0, 9.81] + 0.02 * rng.standard_normal((ticks, 3))
    y["y"] = np.tile(START[7:], (ticks, 1))
    columns = {name: {"names": list("xyz")} for name in ("gyro", "accelerometer")}
    columns["y"] = {"names": list(LEGS)}
    times = PERIOD * np.arange(ticks)
    path = tmp_path / "log.npz"
    np.savez(path, t=times, columns=np.array(json.dumps(columns)), **y)
    (tmp_path / "tripod.xml").write_text(MODEL)
    spec = parse_spec(HOLD)
    found = estimate_log_of_spec(spec, tmp_path / "tripod.xml", path)
    assert_allclose(found.said.q[-1, 4:6], 0, atol=2e-3)
    assert np.abs(found.said.v[-1]).max() < 5e-3
    assert found.said.deviation[-1].max() < 0.1
    assert set(found.statuses) == {found.estimator.statuses[0]}
    assert [row.used for row in found.innovations] == pytest.approx([1.0] * 3, abs=0.02)
    assert any("about the vertical" in text for text in found.sentences())
    y["y"][:, 1] = np.nan
    np.savez(path, t=times, columns=np.array(json.dumps(columns)), **y)
    with pytest.raises(ProblemError, match="channel of 'b' has no number"):
        estimate_log_of_spec(spec, tmp_path / "tripod.xml", path)
    np.savez(path, t=times, gyro=np.zeros((ticks, 3)))
    with pytest.raises(UnknownNameError, match="channels"):
        estimate_log_of_spec(spec, tmp_path / "tripod.xml", path)
