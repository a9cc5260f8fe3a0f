"""`init --task drive`: wheels, the path, and how fast actuators can follow it."""

import tomllib

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.errors import ProblemError
from mbcasadi.validation import ReportOptions
from mbcasadi.validation.spec import MotionOptions, parse_spec, propose_spec, run_spec
from mbcasadi.validation.spec.wheel_speeds import FREQUENCY

QUICK = ReportOptions(explain=False, timing=False)

WHEEL = """
<body name="{name}_wheel" pos="0 {y} 0.05" quat="0.70710678 -0.70710678 0 0">
  <joint name="{name}" axis="0 0 1" damping="0.02"/>
  <geom type="cylinder" size="0.05 0.01" mass="0.3" friction="0.9"/>
</body>"""
CAR = f"""
<mujoco model="car">
  <option timestep="0.002" integrator="implicitfast" cone="elliptic"/>
  <worldbody>
    <body name="base">
      <freejoint/>
      <geom type="box" pos="-0.03 0 0.08" size="0.12 0.1 0.02" mass="4"/>
      <geom name="caster" type="sphere" pos="-0.12 0 0.02" size="0.02" mass="0.1" condim="1"
            priority="1"/>
      {WHEEL.format(name="left", y=0.15)}{WHEEL.format(name="right", y=-0.15)}
    </body>
  </worldbody>
  <actuator>
    <motor joint="left" ctrlrange="-2 2"/>
    <motor joint="right" ctrlrange="-2 2"/>
  </actuator>
</mujoco>"""
SLIDES = """
<mujoco model="slides">
  <worldbody>
    <body name="base">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
      <joint name="yaw"/><geom type="box" size="0.2 0.2 0.1" mass="20"/>
    </body>
  </worldbody>
  <actuator><motor joint="x"/><motor joint="y"/><motor joint="yaw"/></actuator>
</mujoco>"""


def proposed(tmp_path, text, **options):
    """Return the file of a model, and the tables in it."""
    model = tmp_path / "model.xml"
    model.write_text(text)
    return model, propose_spec(model, **options)


def frequency(text):
    """Return the Hz of the path along x."""
    return float(text.split("\nx = ")[1].split("frequency = ")[1].split(",")[0])


def spec_of(text):
    """Return the spec of a file's text."""
    return parse_spec(tomllib.loads(text))


def test_a_differential_drive_follows_a_path_at_the_first_try(tmp_path):
    model, text = proposed(tmp_path, CAR)
    assert "offset = [0.15, 0.0, 0.05]" in text  # half the track ahead of the axle
    assert "radius = 0.05 " in text
    assert 'frame = "caster on floor"' in text
    spec = spec_of(text)
    run = run_spec(spec.with_trial(perturb={"mass": 0.1}, delay=1), model, QUICK).runs[0]
    assert run.passed
    moved = np.ptp(run.recording.q[:, :2], axis=0)
    assert moved[0] > 0.1  # it did go somewhere: the path is 0.3 m long


def test_a_base_holds_on_its_wheels_and_not_on_fingers_above_the_ground(tmp_path):
    rubber = '<joint name="{0}" axis="1 0 0" stiffness="1" damping="0.01"/>'
    arm = f"""
<body name="arm" pos="0.05 0 0.1">
  <joint name="arm" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.01" mass="0.3"/>
  <body name="tip" pos="0.2 0 0">
    {rubber.format("rubber")}<geom type="box" pos="0 0 -0.02" size="0.02 0.02 0.01" mass="0.01"/>
  </body>
</body>"""
    servos = "".join(
        f'<velocity joint="{name}" kv="100" ctrlrange="-6 6" forcerange="-100 100"/>'
        for name in ("left", "right")
    )
    servos += '<position joint="arm" kp="50" kv="5" ctrlrange="-2 2"/>'
    motors, caster = CAR.split("<actuator>")[1].split("</actuator>")[0], '<geom name="caster"'
    text = CAR.replace(motors, servos).replace(caster, arm + caster)
    text = text.replace("-0.12 0 0.02", "-0.12 0 0.019")  # wheels are 1 mm above the ground
    model, text = proposed(tmp_path, text, task="hold")
    tables = tomllib.loads(text)
    assert [each["frame"] for each in tables["contact"]] == [
        "left_wheel",
        "right_wheel",
        "caster on floor",
    ]
    assert tables["task"][1]["joints"] == ["arm", "left", "right"]  # nothing drives the rubber
    assert 2 * tables["start"]["q"][5] == pytest.approx(0.001 / 0.12, rel=0.05)  # it has tipped
    run = run_spec(spec_of(text).with_trial(perturb={"mass": 0.1}, delay=1), model, QUICK).runs[0]
    assert run.passed


def test_weak_wheels_make_the_path_slower_and_none_refuse_it(tmp_path):
    _, asked = proposed(tmp_path, CAR, task="drive", motion=MotionOptions(speed=0.1))
    assert frequency(asked) == pytest.approx(0.1 / (2**0.5 * np.pi * 0.3), rel=1e-3)
    with pytest.raises(ProblemError, match=r"speed = 90 m/s of 'car'.* expected at most that"):
        proposed(tmp_path, CAR, motion=MotionOptions(speed=90.0))
    weak = CAR.replace('ctrlrange="-2 2"', 'ctrlrange="-0.08 0.08"')
    _, slower = proposed(tmp_path, weak, task="drive")
    assert frequency(slower) < 0.8 * FREQUENCY
    stuck = CAR.replace('damping="0.02"', 'damping="0.02" frictionloss="3"')
    with pytest.raises(ProblemError, match="its actuators do not turn the wheels"):
        proposed(tmp_path, stuck, task="drive")


def test_wheels_of_servos_are_refused(tmp_path):
    servo = '<velocity name="servo" joint="right" kv="5"/>'
    text = CAR.replace('<motor joint="right" ctrlrange="-2 2"/>', servo)
    with pytest.raises(ProblemError, match="servo are servos"):
        proposed(tmp_path, text, task="drive")


def test_a_base_that_slides_follows_position_and_heading(tmp_path):
    model, text = proposed(tmp_path, SLIDES)
    assert 'orientation = "z"' in text
    assert "[[contact]]" not in text
    assert run_spec(spec_of(text).with_trial(fast=True), model, QUICK).passed
    with pytest.raises(ProblemError, match="no actuator drives y of its base; expected one of ea"):
        proposed(tmp_path, SLIDES.replace('<motor joint="y"/>', ""), task="drive")


def test_what_has_no_wheels_does_not_drive():
    with pytest.raises(ProblemError, match=r"task 'drive' of .*; expected one of"):
        propose_spec(mb.models.path("arm_gripper"), task="drive")
