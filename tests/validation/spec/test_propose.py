"""`init` writes a file that `validate` takes, or an error says what the model lacks."""

import tomllib

import pytest

import mbcasadi as mb
from mbcasadi.errors import ProblemError
from mbcasadi.validation.spec import propose_spec, read_spec, run_spec

STIFF = """<mujoco><compiler angle="radian"/><option integrator="implicitfast"/><worldbody>
<body name="left"><joint name="a" axis="0 1 0" range="0.2 1" limited="true"/>
<geom size=".02" pos=".1 0 0" mass="2"/></body>
<body name="right" pos="0 .2 0"><joint name="b" axis="0 1 0"/>
<geom size=".02" pos=".1 0 0" mass="2"/></body></worldbody>
<equality><joint joint1="b" joint2="a"/></equality>
<actuator><position name="servo" joint="a" kp="2000" kv="100"/></actuator></mujoco>"""
ON_KNEES = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
<body name="trunk" pos="0 0 1"><freejoint/>
<geom name="belly" type="box" size=".1 .1 .1" pos="0 0 -.5"/>
{legs}</body></worldbody><actuator>{motors}</actuator></mujoco>"""
LEG = """<body pos="{x} {y} 0"><joint name="hip{k}" axis="0 1 0"/><geom size=".03" pos="0 0 -.1"/>
<body pos="0 0 -.2"><joint name="knee{k}" axis="0 1 0"/>
<geom name="toe{k}" size=".03" pos="0 0 -.2"/></body></body>"""


def written(tmp_path, xml):
    """Return the model's file, the text of the controller, and the warnings."""
    model, warnings = tmp_path / "model.xml", []
    model.write_text(xml)
    return model, propose_spec(model, warn=warnings.append), warnings


def passes(tmp_path, model, text):
    """Return whether a short run of the file passes."""
    file = tmp_path / "spec.toml"
    file.write_text(text.replace("duration = 2.0", "duration = 0.3"))
    return run_spec(read_spec(file).with_trial(fast=True), model).passed


def test_servos_that_rigid_loops_do_not_suit_get_soft_ones_and_a_start_in_the_range(tmp_path):
    model, text, _ = written(tmp_path, STIFF)
    spec = tomllib.loads(text)
    assert "rigid" not in spec["validation"]
    assert spec["start"]["q"] == pytest.approx([0.2, 0.2], abs=1e-5)
    assert "moved into the range: a" in text
    assert spec["task"][0]["joints"] == ["a"]
    assert passes(tmp_path, model, text)
    _, soft, _ = written(tmp_path, STIFF.replace('kp="2000" kv="100"', 'kp="20" kv="1"'))
    assert tomllib.loads(soft)["validation"]["rigid"]


def test_what_flies_keeps_height_and_attitude(tmp_path):
    path = mb.models.path("quadrotor")
    text = propose_spec(path, warn=lambda sentence: pytest.fail(sentence))
    (task,) = tomllib.loads(text)["task"]
    assert (task["type"], task["position"]) == ("frame", "z")
    assert passes(tmp_path, path, text)


def test_feet_are_lowest_and_a_robot_without_them_is_told_so(tmp_path):
    legs = "".join(LEG.format(k=k, x=x, y=y) for k, (x, y) in enumerate([(1, 1), (1, -1), (-1, 0)]))
    motors = "".join(f'<motor joint="{j}{k}"/>' for k in range(3) for j in ("hip", "knee"))
    _, text, warnings = written(tmp_path, ON_KNEES.format(legs=legs, motors=motors))
    assert "[[contact]]" not in text
    assert "What is lowest at the start is no foot" in warnings[0]
    raised = ON_KNEES.replace("0 0 -.5", "0 0 0").format(legs=legs, motors=motors)
    _, text, warnings = written(tmp_path, raised)
    assert text.count("[[contact]]") == 3
    assert not warnings


def test_a_model_without_actuators_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ProblemError, match=r"no actuator.*add <actuator>"):
        written(tmp_path, STIFF.split("<actuator>")[0] + "</mujoco>")
