"""The table [estimation] of a controller's file: in validation, in C, and what it refuses."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from support.tripod import LEGS, MODEL, PERIOD, START

import mbcasadi as mb
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.validation import ReportOptions
from mbcasadi.validation.spec import (
    build_experiment,
    example_inputs,
    json_schema,
    parse_spec,
    propose_spec,
    run_spec,
)

NOISY = {
    "gyro": {"bias": 2e-3}, "accelerometer": {"bias": 0.02}, "position": {"bits": 16},
    "rate": {"missing": 0.01},
}  # fmt: skip
BASE = {"type": "base", "imu": {"frame": "imu"}, "encoders": {"bits": 16, "rate_noise": 5e-3}}
HOLD = {
    "type": "inverse_dynamics_qp",
    "name": "hold",
    "period": PERIOD,
    "start": {"q": START.tolist()},
    "task": [{"type": "frame", "frame": "trunk", "kind": "body", "kp": 100.0}],
    "contact": [{"frame": leg, "friction": 0.7} for leg in LEGS],
    "validation": {"duration": 0.6, "fast": True, "delay": 1},
}
QUICK = ReportOptions(explain=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tripod.xml"
    path.write_text(MODEL)
    return path


@pytest.mark.long
def test_validation_tells_the_law_what_the_estimator_makes_of_the_sensors(model):
    spec = parse_spec(HOLD | {"estimation": BASE | {"errors": NOISY, "seed": 3}})
    run = run_spec(spec, model, QUICK).runs[0]
    monitor = run.recording.monitor
    assert not run.recording.events
    assert np.isnan(monitor["estimate_y"]).any(), "rates are missing at times"
    steps = np.diff(np.unique(monitor["estimate_y"][:, 6]))
    assert steps.min() == pytest.approx(2 * np.pi / 2**16, rel=1e-6), "encoders of 16 bits"
    assert np.abs(monitor["estimate_error"]).max() > 1e-6
    assert run.metric("estimate.tilt") < 0.02


def test_a_late_fix_of_the_pose_is_in_the_loop(model):
    camera = {"kind": "pose", "frame": "imu", "noise": 1e-3, "longest_delay": 3 * PERIOD}
    errors = {"frame_position": {"delay": 2}, "frame_rotation": {"delay": 2}}
    spec = parse_spec(HOLD | {"estimation": BASE | {"fix": [camera], "errors": errors}})
    law = build_experiment(spec, model).all_laws[""]
    assert law.function.name_in() == ["y", "valid", "age", "dt", "ref", "mask", "z"]
    monitor = run_spec(spec, model, QUICK).runs[0].recording.monitor
    assert monitor["estimate_age"].max() == pytest.approx(2 * PERIOD)
    assert np.abs(monitor["estimate_error"][50:, :3]).max() < 5e-3


def test_an_imu_that_fails_for_long_leads_to_the_safe_output(model):
    lost = {"gyro": {"missing": 1.0}}
    spec = parse_spec(HOLD | {"estimation": BASE | {"errors": lost, "blind": 0.1}})
    status = run_spec(spec, model, QUICK).runs[0].recording.status
    first = round(0.1 / PERIOD)
    assert not status[: first - 1].any()
    assert set(status[first + 1 :]) == {3}


def test_the_exported_law_takes_measurements(model):
    experiment = build_experiment(parse_spec(HOLD | {"estimation": BASE}), model)
    law = experiment.all_laws[""]
    assert law.function.name_in() == ["y", "valid", "dt", "ref", "mask", "z"]
    assert list(example_inputs(experiment)[""]) == ["ref", "mask"]
    assert law.example_inputs()["y"][6:9] == pytest.approx(START[7:])
    assert law.controller.z0.size == law.estimator.z0.size + len(LEGS) + 2 * len(LEGS) + 1 + (
        law.law.controller.z0.size
    ), "the estimate, the mask, two controls of a loop that is late, a count, the law"


def test_a_filter_of_any_mechanism():
    tables = {
        "type": "lqr", "equilibrium": {"q": [0.0, 0.0, 0.0]}, "Q": {"position": 100.0},
        "estimation": {
            "type": "manifold", "force_noise": 0.02, "options": {"position": 0.01},
            "sensor": [{"name": "crank", "kind": "position", "noise": 1e-3}],
        },
        "validation": {"duration": 0.2, "rigid": True, "fast": True},
    }  # fmt: skip
    run = run_spec(parse_spec(tables), mb.models.path("four_bar"), QUICK).runs[0]
    assert run.recording.monitor["estimate_y"].shape[1] == 1
    assert run.metric("estimate.within") > 0.9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"imu": {"frme": "imu"}}, r"unknown key 'frme'; valid: .*'frame'"),
        ({"type": "bass"}, r"estimation.*'base', 'manifold'"),
        ({"encoders": {"bits": 12, "noise": 1e-3}}, "give bits or noise, not both"),
        ({"encoders": {"bits": 0}}, r"encoders\.bits"),
        ({"errors": {"gyro": {"missing": 2.0}}}, "missing = 2.0"),
        ({"blind": 0}, "blind"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(change, words):
    with pytest.raises((ProblemError, UnknownNameError), match=words):
        parse_spec(HOLD | {"estimation": BASE | change})


def test_names_that_the_model_lacks_are_refused_with_the_valid_ones(model):
    for change, words in (
        ({"imu": {"frame": "imo"}}, "'imo'.*'imu'"),
        ({"errors": {"gyros": {}}}, "'gyros'.*'gyro'"),
    ):
        with pytest.raises(UnknownNameError, match=words):
            build_experiment(parse_spec(HOLD | {"estimation": BASE | change}), model)


def test_the_schema_knows_the_table():
    schema = json_schema()
    base = schema["$defs"]["BaseEstimation"]["properties"]
    assert {"imu", "encoders", "footing", "first", "errors", "blind", "on_force"} <= set(base)
    assert "manifold" in str(schema["$defs"]["ManifoldEstimation"]["properties"]["type"])


@pytest.mark.long
def test_the_lines_that_init_comments_out_are_a_table():
    model = mb.models.path("quadruped")
    text = propose_spec(model)
    assert "estimation" not in tomllib.loads(text)
    assert 'imu = { frame = "trunk", kind = "body" }' in text, "the model has no gyroscope"
    block = re.search(r"(?:^# .*\n)*^# position = .*\n", text[text.index("# [estimation]") :], re.M)
    lines = [line.removeprefix("# ") for line in block[0].splitlines()]
    spec = parse_spec(tomllib.loads(text + "\n" + "\n".join(lines)))
    sensors = build_experiment(spec, model).sensors
    assert sensors.estimator.sensors[0].target == "trunk"
    assert sensors.errors["position"].quantum == pytest.approx(2 * np.pi / 2**14)


def test_init_takes_the_frame_of_the_models_gyroscope(tmp_path):
    path, text = tmp_path / "robot.xml", Path(mb.models.path("quadruped")).read_text()
    path.write_text(
        text.replace("</worldbody>", '</worldbody><sensor><gyro site="trunk"/></sensor>')
    )
    assert 'imu = { frame = "trunk", kind = "site" }' in propose_spec(path)
