"""The table [sequence] of a controller's file: modes in validation and in C, and its errors."""

import tomllib

import numpy as np
import pytest

from mbcasadi.errors import ProblemError
from mbcasadi.validation import ReportOptions
from mbcasadi.validation.spec import build_experiment, parse_spec, run_spec

ARM = """
<mujoco><option timestep="0.002" gravity="0 0 0"/>
  <default><geom type="capsule" size=".03" contype="0" conaffinity="0" mass="1"/>
    <motor ctrllimited="true" ctrlrange="-40 40"/></default>
  <worldbody><body><joint name="shoulder" axis="0 0 1"/><geom fromto="0 0 0 .4 0 0"/>
    <body pos=".4 0 0"><joint name="elbow" axis="0 0 1"/><geom fromto="0 0 0 .3 0 0"/>
  </body></body></worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/></actuator>
</mujoco>
"""
FILE = """
type = "inverse_dynamics_qp"
name = "reach"
period = 0.002
[[task]]
type = "posture"
kp = 100.0
[options]
tunable = ["weights"]
[validation]
duration = 1.0
[sequence.mode.home]
[sequence.mode.away]
tuning = { "posture.weight.elbow" = 2.0 }
reference = { "posture.q" = [0.0, 0.3] }
[sequence.mode.rest]
[[sequence.transition]]
source = "home"
target = "away"
after = 0.1
fade = 0.3
[[sequence.transition]]
source = "away"
target = "rest"
when = "q.elbow"
above = 0.29
after = 0.35
fade = 0.2
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "arm.xml"
    path.write_text(ARM)
    return path


def test_a_file_has_modes_in_validation_and_in_c(model):
    spec = parse_spec(tomllib.loads(FILE))
    law = build_experiment(spec, model).all_laws[""]
    assert law.controller.name == "reach"
    assert law.modes == ("home", "away", "rest")
    recording = run_spec(spec, model, ReportOptions(explain=False)).runs[0].recording
    elbow, mode = recording.q[:, 1], recording.z[:, 0]
    assert elbow.max() == pytest.approx(0.3, abs=0.01)
    assert elbow[-1] == pytest.approx(0.0, abs=0.02)
    assert np.flatnonzero(np.diff(mode))[0] == pytest.approx(0.1 / 0.002, abs=1)
    assert list(dict.fromkeys(mode)) == [0.0, 1.0, 2.0]
    assert not recording.status.any()


def test_what_is_wrong_in_the_table_is_told(model):
    for text, other, told in (
        ("posture.weight.elbow", "posture.weight.knee", "posture.weight.knee"),
        ('target = "away"', 'target = "far"', "'far'"),
        ("fade = 0.3", "fade = -0.3", "fade = -0.3"),
        ("fade = 0.3", "fades = 0.3", "'fades'"),
    ):
        with pytest.raises(ProblemError, match=told):
            build_experiment(parse_spec(tomllib.loads(FILE.replace(text, other))), model)
