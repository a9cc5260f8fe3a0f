"""`init --task grasp`: a ball among fingers, a pose that holds it, and a file that passes."""

import tomllib

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mbcasadi as mb
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.plant import FreeObject, with_object
from mbcasadi.validation.report import ReportOptions
from mbcasadi.validation.spec import grasping, propose_spec, read_spec, run_spec
from mbcasadi.validation.spec.grasp_scene import Scene, balanced
from mbcasadi.validation.spec.grasp_search import grasp_of_hand

GRIPPER = """<mujoco model="gripper"><option timestep="0.002"/><worldbody>
<body name="palm" pos="0 0 .5"><geom type="box" size=".05 .02 .01" mass=".3"/>
{fingers}</body></worldbody>
<equality><joint joint1="right" joint2="left"/></equality>
<actuator><position name="close" joint="left" kp="200" kv="20" ctrlrange="-.04 0"
 forcerange="-{force} {force}"/></actuator></mujoco>"""
FINGER = """<body name="{side}" pos="{x} 0 -.02"><joint name="{side}" type="slide"
axis="{sign} 0 0" range="-.04 .001" limited="true" armature=".1"/>
<geom name="{side}" type="box" size=".005 .015 .03" pos="0 0 -.03" mass=".05"/></body>"""
HAND = """<mujoco><worldbody>{fingers}</worldbody></mujoco>"""
LIMB = """<body pos="{x} {y} 0" euler="0 0 {turn}"><joint name="a{k}" axis="0 1 0" range="-60 60"/>
<joint name="b{k}" axis="1 0 0" range="-30 30"/>
<geom type="capsule" fromto="0 0 0 0 0 .05" size=".01"/>
<body pos="0 0 .06"><joint name="c{k}" axis="0 1 0" range="-100 10"/>
<geom name="tip{k}" type="capsule" fromto="0 0 .01 0 0 .04" size=".01"/></body></body>"""


def gripper(force=20.0):
    fingers = "".join(
        FINGER.format(side=side, x=sign * 0.045, sign=sign)
        for side, sign in (("left", 1), ("right", -1))
    )
    return GRIPPER.format(fingers=fingers, force=force)


def hand():
    angles = np.deg2rad([0, 120, 240])
    places = zip(0.06 * np.cos(angles), 0.06 * np.sin(angles), np.rad2deg(angles), strict=True)
    limbs = [LIMB.format(k=k, x=x, y=y, turn=turn) for k, (x, y, turn) in enumerate(places)]
    return HAND.format(fingers="".join(limbs))


def servo_hand(damping, servo):
    """Return a hand with an actuator at each joint."""
    servos = "".join(servo.format(joint=f"{j}{k}") for k in range(3) for j in "abc")
    options = f'<option timestep=".002"/><default><joint damping="{damping}"/></default>'
    text = hand().replace("<worldbody>", f"{options}<worldbody>")
    return text.replace("</mujoco>", f"<actuator>{servos}</actuator></mujoco>")


SERVO = '<position joint="{joint}" kp="5" ctrlrange="-2 2"/>'


def test_light_fingers_that_are_damped_get_a_finer_step_of_the_plant(tmp_path):
    path, finer = tmp_path / "hand.xml", {}
    for damping in (1e-5, 1.0):
        path.write_text(servo_hand(damping, SERVO))
        spec = tomllib.loads(propose_spec(path, task="grasp"))
        finer[damping] = spec["period"] / spec["validation"].get("timestep", 0.002)
    assert finer[1e-5] == pytest.approx(1.0)
    assert finer[1.0] > 1.5


def test_what_cannot_hold_the_ball_at_once_is_refused(tmp_path):
    """Activations that take a second give no force in the first tick."""
    path = tmp_path / "hand.xml"
    slow = '<general joint="{joint}" dyntype="filter" dynprm="1" gainprm="1" ctrlrange="-2 2"/>'
    path.write_text(servo_hand(1e-5, slow))
    with pytest.raises(ProblemError, match=r"at the start .* exclude each other"):
        propose_spec(path, task="grasp")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return the model's file, and that of its controller, which is shaken once along each axis."""
    folder = tmp_path_factory.mktemp("grasp")
    model, spec = folder / "gripper.xml", folder / "spec.toml"
    model.write_text(gripper())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grasping, "WAVES", 1)
        spec.write_text(propose_spec(model, task="grasp"))
    return model, spec


def test_a_gripper_holds_a_ball_that_is_shaken_and_motors_of_half_the_force_do_not(written):
    model, file = written
    tables = tomllib.loads(file.read_text())
    assert len(tables["contact"]) == 2
    mass, friction = tables["object"]["mass"], tables["contact"][0]["friction"]
    pushes = tables["validation"]["push"]
    assert_allclose(
        np.sum([push["force"] for push in pushes], axis=0), 0.5 * 9.81 * mass, rtol=1e-3
    )
    needed = 1.5 * 9.81 * mass / (2 * friction)
    assert tables["contact"][0]["min_force"] > 2 * needed
    spec = read_spec(file).with_trial(delay=1, perturb={"mass": 0.1}, fast=True)
    report = run_spec(spec, model, ReportOptions(explain=False))
    assert report.passed
    assert report.runs[0].recording.t[-1] > 2.0
    weak = model.with_name("weak.xml")
    weak.write_text(gripper(force=0.5 * needed))
    assert not run_spec(spec, weak, ReportOptions(explain=False)).passed


def test_tips_of_a_hand_touch_the_ball_and_press_against_each_other():
    source = with_object(hand(), FreeObject("ball", 0.05, 0.1, (0, 0, -1)))
    model = source.compile()
    scene = Scene(model, model.qpos0)
    assert [len(tip) for tip in scene.tips] == [1, 1, 1]
    grasp = next(grasp_of_hand(scene, None, [0.025]))
    system = mb.read_mjcf(source)
    touching = [each for each in mb.contacts_of(system, ["object"]) if "tip" in each.name]
    assert len(touching) == 3
    gaps, normals = [], []
    for each in touching:
        assert {each.geom1, each.geom2} & set(grasp.tips)
        gap, _, normal = (np.array(x).ravel() for x in each.gap(grasp.q))
        gaps.append(float(gap[0]))
        normals.append(normal if each.geom1 == "object" else -normal)
    assert_allclose(gaps, 0.0, atol=5e-4)
    assert np.linalg.norm(np.sum(normals, axis=0)) < 0.3


def test_normals_balance_where_friction_has_little_to_do():
    x, y, z = np.eye(3)
    assert balanced([x, -x])
    assert balanced([x, -0.5 * x + 0.87 * y, -0.5 * x - 0.87 * y])
    for unbalanced in ([x, y], [x, y, z], [x, 0.6 * z - 0.8 * x, 0.6 * z + 0.8 * y]):
        assert not balanced(unbalanced)


def test_an_object_is_free_and_touches_what_it_is_to_touch():
    masks = gripper().replace("<geom name", '<geom contype="0" conaffinity="0" name')
    keyed = masks.replace(
        "</mujoco>", '<keyframe><key name="k" qpos="-.01 -.01"/></keyframe></mujoco>'
    )
    ball = FreeObject("ball", 0.04, 0.2, (0, 0, 0.45), friction=0.4, touches=("left",))
    model = with_object(keyed, ball).compile()
    assert_allclose(model.key_qpos[0], [-0.01, -0.01, 0, 0, 0.45, 1, 0, 0, 0])
    assert model.body("object").mass[0] == pytest.approx(0.2)
    data = mujoco.MjData(model)
    data.qpos[:] = model.key_qpos[0]
    for side in (1, -1):
        data.qpos[2] = side * 0.02
        mujoco.mj_forward(model, data)
        sides = {model.geom(g).name for each in data.contact for g in each.geom}
        assert sides == ({"left", "object"} if side == 1 else set())
        if side == 1:
            assert data.contact[0].friction[0] == pytest.approx(0.4)  # that of the ball
    box = with_object(gripper(), FreeObject("box", 0.04, 0.2, (0, 0, 0.45), friction=0.4)).compile()
    assert_allclose(box.geom("object").size, 0.02)
    with pytest.raises(UnknownNameError, match="unknown geom 'toe'"):
        with_object(gripper(), FreeObject("ball", 0.04, 0.2, (0, 0, 0), touches=("toe",)))
    with pytest.raises(ProblemError, match="a body 'object'; leave"):
        with_object(with_object(gripper(), ball), ball)
    with pytest.raises(ProblemError, match="shape"):
        FreeObject("cone", 0.04, 0.2, (0, 0, 0))


def test_what_has_no_fingers_or_cannot_hold_is_refused(tmp_path):
    with pytest.raises(ProblemError, match="task 'grasp' of 'quadruped', which is a quadruped"):
        propose_spec(mb.models.path("quadruped"), task="grasp")
    file = tmp_path / "stuck.xml"
    file.write_text(gripper().replace('ctrlrange="-.04 0"', 'ctrlrange="0 .001"'))
    with pytest.raises(ProblemError, match="no pose was found in which tips"):
        propose_spec(file, task="grasp")
