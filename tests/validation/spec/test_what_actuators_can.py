"""Actuators can do what `init` asks: circles, fingers on one tendon, pushes of a balance."""

import tomllib

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control.regulators import equilibrium, linearize, lqr_gain
from mbcasadi.errors import ProblemError
from mbcasadi.validation.spec import parse_spec, propose_spec, run_spec
from mbcasadi.validation.spec.balanced_push import ANSWERED, answered_share

CARRIAGE = """<mujoco>{option}<worldbody><body name="carriage"><joint name="x" type="slide"
axis="1 0 0" range="-1 1" limited="true"/><geom size=".05" mass="1"/><body name="cross">
<joint name="y" type="slide" axis="0 1 0" range="-1 1" limited="true"/>
<joint name="turn" axis="0 0 1" damping="1"/><geom size=".05" pos=".05 0 0" mass="1"/>{fingers}
</body></body></worldbody>{rest}<actuator><motor name="x" joint="x" ctrlrange="-{force} {force}"/>
<motor name="y" joint="y" ctrlrange="-{force} {force}"/>
<motor name="turn" joint="turn" ctrlrange="-5 5"/>{grip}</actuator></mujoco>"""
NO_WEIGHT = '<option gravity="0 0 0"/>'
FINGERS = "".join(
    f'<body name="{side}_finger" pos=".2 {y} 0"><joint name="{side}" type="slide" axis="0 {y} 0" '
    'range="0 .05" limited="true" stiffness="100" damping="5"/><geom size=".01" mass=".1"/></body>'
    for side, y in (("left", 0.1), ("right", -0.1))
)
TENDON = '<tendon><fixed name="both"><joint joint="left" coef=".5"/>'
TENDON += '<joint joint="right" coef=".5"/></fixed></tendon>'
COUPLED = '<equality><joint joint1="left" joint2="right"/></equality>'
GRIP = '<motor name="grip" tendon="both" ctrlrange="-20 20"/>'


def carriage(force=50.0, option=NO_WEIGHT, fingers="", rest="", grip=""):
    return CARRIAGE.format(force=force, option=option, fingers=fingers, rest=rest, grip=grip)


def spec_of(tmp_path, xml, task=None):
    """Return the model's file, the spec, and what was warned of."""
    model, warnings = tmp_path / "model.xml", []
    model.write_text(xml)
    return model, tomllib.loads(propose_spec(model, task=task, warn=warnings.append)), warnings


def rest_of(spec):
    return next(task for task in spec["task"] if task.get("name") == "rest")


def test_a_circle_that_motors_cannot_do_is_refused_and_the_arm_holds_where_it_starts(tmp_path):
    _, spec, warnings = spec_of(tmp_path, carriage(50.0))
    assert any(task.get("name") == "tool" for task in spec["task"])
    assert not warnings
    _, spec, warnings = spec_of(tmp_path, carriage(0.01))
    assert [task["type"] for task in spec["task"]] == ["posture"]
    assert "times what an actuator" in warnings[0]
    with pytest.raises(ProblemError, match=r"a circle of .* takes .* times what an actuator"):
        spec_of(tmp_path, carriage(0.01), task="track")


def test_an_arm_needs_no_gravity(tmp_path):
    for option in (NO_WEIGHT, ""):
        _, spec, _ = spec_of(tmp_path, carriage(option=option), task="track")
        assert "tool" in [task.get("name") for task in spec["task"]]


def test_fingers_that_share_a_tendon_weigh_less_than_the_tool(tmp_path):
    on_one = {"fingers": FINGERS, "grip": GRIP}
    _, spec, _ = spec_of(tmp_path, carriage(rest=TENDON, **on_one))
    assert rest_of(spec)["joints"] == ["left", "right"]
    assert rest_of(spec)["weight"] < 0.01
    _, spec, _ = spec_of(tmp_path, carriage(rest=TENDON + COUPLED, **on_one))
    assert "weight" not in rest_of(spec)


@pytest.mark.long
def test_the_arm_does_not_swing_to_hold_such_fingers(tmp_path):
    xml = carriage(rest=TENDON, fingers=FINGERS, grip=GRIP)
    model, spec, _ = spec_of(tmp_path, xml)
    turns = {}
    for weight in (rest_of(spec).get("weight", 1.0), 1.0):
        rest_of(spec)["weight"] = weight
        report = run_spec(parse_spec(spec).with_trial(fast=True), model)
        turns[weight] = np.abs(report.runs[0].recording.q[:, 2]).max()  # rad
    ours, equal = turns[min(turns)], turns[1.0]
    assert equal > 0.1
    assert ours < 0.1 * equal


POLE = """<mujoco><option timestep=".005"/><worldbody><body name="cart">
<joint name="slide" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/><body name="pole">
<joint name="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 1" size=".02" mass="1"/>
</body></body></worldbody><actuator><motor name="push" joint="slide" ctrlrange="-{force} {force}"/>
</actuator></mujoco>"""


@pytest.mark.parametrize("force", [1.0, 4.0])
def test_a_push_is_what_half_of_the_range_answers(force):
    """The answer is found by the steps of the continuous system, with the control held."""
    system = mb.read_mjcf(POLE.format(force=force))
    q, period, change = np.zeros(2), 0.005, np.array([0.0, 0.3])
    weights = np.repeat([1.0, 0.1], 2), np.array([1 / force**2])
    share = answered_share(system, q, change, weights, period)
    linear = linearize(system, equilibrium(system, q))
    K, fine = lqr_gain(linear, *weights, period=period).K, 100
    x, most = np.concatenate([np.zeros(2), np.linalg.solve(linear.Z_v, change * share)]), 0.0
    for _ in range(600):
        u = -K @ x
        most = max(most, abs(float(u[0])))
        for _ in range(fine):
            x = x + period / fine * (linear.dfdx @ x + linear.dfdu @ u)
    assert share < 1
    assert most == pytest.approx(ANSWERED * force, rel=1e-2)


def test_a_push_that_controls_answer_is_whole():
    system = mb.read_mjcf(POLE.format(force=400.0))
    weights = np.repeat([1.0, 0.1], 2), np.array([1.0])
    assert answered_share(system, np.zeros(2), np.array([0.0, 0.3]), weights, 0.005) == 1.0
