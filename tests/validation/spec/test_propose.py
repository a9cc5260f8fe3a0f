"""`init` writes a file that `validate` takes, or an error says what the model lacks."""

import re
import tomllib

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.system import contacts_of
from mbcasadi.validation.spec import (
    MotionOptions,
    parse_spec,
    propose,
    propose_spec,
    read_spec,
    run_spec,
)
from mbcasadi.validation.spec.activities import PLAN, activity_of
from mbcasadi.validation.spec.workspace import workplace

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
NO_WEIGHT = '<option gravity="0 0 0"/><worldbody>'
WEAK = 'joint="hip0" ctrlrange="-.1 .1"'
LEG = """<body pos="{x} {y} 0"><joint name="hip{k}" axis="0 1 0"/><geom size=".03" pos="0 0 -.1"/>
<body pos="0 0 -.2"><joint name="knee{k}" axis="0 1 0"/>
<geom name="toe{k}" size=".03" pos="0 0 -.2"/></body></body>"""


def written(tmp_path, xml, task=None):
    """Return the model's file, the text of the controller, and the warnings."""
    model, warnings = tmp_path / "model.xml", []
    model.write_text(xml)
    return model, propose_spec(model, task=task, warn=warnings.append), warnings


def passes(tmp_path, model, text):
    """Return whether a short run of the file passes."""
    file = tmp_path / "spec.toml"
    file.write_text(text.replace("duration = 2.0", "duration = 0.3"))
    return run_spec(read_spec(file).with_trial(fast=True), model).passed


@pytest.mark.long
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


def test_the_trial_lasts_a_whole_number_of_odd_periods(tmp_path):
    odd = STIFF.replace("<option ", '<option timestep=".00141421" ')
    _, text, _ = written(tmp_path, odd)
    spec = tomllib.loads(text)
    periods = spec["validation"]["duration"] / spec["period"]
    assert spec["period"] == 0.00141421
    assert periods == pytest.approx(round(periods), abs=1e-6)
    assert spec["validation"]["duration"] == pytest.approx(2.0, abs=spec["period"])


@pytest.mark.long
def test_what_flies_keeps_height_and_attitude(tmp_path):
    path = mb.models.path("quadrotor")
    text = propose_spec(path, warn=lambda sentence: pytest.fail(sentence))
    (task,) = tomllib.loads(text)["task"]
    assert (task["type"], task["position"]) == ("frame", "z")
    assert passes(tmp_path, path, text)


@pytest.mark.long
def test_feet_are_lowest_and_a_robot_without_them_is_told_so(tmp_path):
    legs = "".join(LEG.format(k=k, x=x, y=y) for k, (x, y) in enumerate([(1, 1), (1, -1), (-1, 0)]))
    motors = "".join(f'<motor joint="{j}{k}"/>' for k in range(3) for j in ("hip", "knee"))
    _, text, warnings = written(tmp_path, ON_KNEES.format(legs=legs, motors=motors))
    assert "[[contact]]" not in text
    assert '"plant.height" = 0.6' in text  # it does not pass, though its joints keep their posture
    assert "What is lowest at the start is no foot" in warnings[0]
    raised = ON_KNEES.replace("0 0 -.5", "0 0 0").format(legs=legs, motors=motors)
    weak = {'name="hip0"': 'name="hip0" range="-9 9"', 'joint="hip0"': WEAK}
    for old, new in weak.items():
        raised = raised.replace(old, new)
    _, text, warnings = written(tmp_path, raised)
    assert text.count("[[contact]]") == 3
    assert not warnings
    (limits,) = (line for line in text.splitlines() if "limits.joint" in line)
    assert re.match("# .*'hip0': it has no actuator with finite limits that brakes it", limits)


PLANAR = """<mujoco><worldbody><geom name="floor" type="plane" size="9 9 .1"/>
<body name="trunk" pos="0 0 1"><joint name="z" type="slide" axis="0 0 -1"/>
<joint name="x" type="slide" axis="1 0 0"/><joint name="lean" axis="0 1 0"/>
<geom type="box" size=".3 .1 .1"/>{legs}</body></worldbody><actuator>{motors}</actuator></mujoco>"""
BENT = LEG.replace("<body pos", '<body euler="0 {turn} 0" pos', 1).replace(
    'pos="0 0 -.2"><', 'pos="0 0 -.2" euler="0 {back} 0"><'
)


def test_joints_beyond_what_stands_are_named(tmp_path, monkeypatch):
    """An ankle whose body has no shape: it stands on its shins."""
    monkeypatch.setattr(propose, "_accepted", lambda facts, *_: facts)  # trials take long
    ankle = '<body pos="0 0 -.2"><joint name="ankle{k}" axis="0 1 0"/><inertial pos="0 0 0" '
    ankle += 'mass=".1" diaginertia="1e-4 1e-4 1e-4"/></body></body></body>'
    stem, _, rest = LEG.rpartition("</body></body>")
    legs = "".join((stem + ankle + rest).format(k=k, x=0, y=y) for k, y in enumerate([0.1, -0.1]))
    motors = "".join(f'<motor joint="{j}{k}"/>' for j in ("hip", "knee") for k in (0, 1))
    motors += '<motor joint="ankle0"/><motor joint="ankle1"/>'
    _, _, warnings = written(
        tmp_path, ON_KNEES.format(legs=legs, motors=motors).replace("-.5", "0")
    )
    assert any("give the bodies beyond them geoms: ankle0, ankle1" in each for each in warnings)


def test_a_base_that_squats_knows_the_dry_friction_of_joints(tmp_path, monkeypatch):
    monkeypatch.setattr(propose, "_accepted", lambda facts, *_: facts)  # trials take long
    text = mb.models.path("quadruped").read_text()
    rough = text.replace('<joint name="FL_calf"', '<joint name="FL_calf" frictionloss=".5"')
    _, rubs, _ = written(tmp_path, rough, "squat")
    assert "friction_loss" in tomllib.loads(rubs)


def test_the_plant_of_a_walk_has_steps_that_its_plans_need(tmp_path):
    model = tmp_path / "model.xml"
    text = mb.models.path("quadruped").read_text()
    model.write_text(re.sub("<option[^>]*/>", '<option timestep="0.005"/>', text))
    spec = tomllib.loads(propose_spec(model, task="trot"))
    timestep = spec["validation"]["timestep"]
    assert timestep == 0.0025
    ticks = spec["period"] / timestep / 10
    assert ticks == pytest.approx(round(ticks))
    assert spec["period"] <= 1.5 * PLAN


def test_a_base_that_moves_in_a_plane_stands_on_its_feet(tmp_path):
    """It begins 0.6 m above the floor, and z points down."""
    legs = [
        BENT.format(k=k, x=x, y=0, turn=-150 * x, back=300 * x) for k, x in enumerate((-0.2, 0.2))
    ]
    motors = "".join(f'<motor joint="{j}{k}"/>' for k in range(2) for j in ("hip", "knee"))
    model, text, warnings = written(tmp_path, PLANAR.format(legs="".join(legs), motors=motors))
    assert not warnings
    assert tomllib.loads(text)["start"]["q"][0] == pytest.approx(0.62, abs=0.05)
    assert text.count("[[contact]]") == 2
    assert passes(tmp_path, model, text)


POLE = """<mujoco><option timestep=".004"/><worldbody><body><joint name="x" type="slide"
axis="1 0 0"/><geom size=".1" mass="1"/><body><joint name="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 .5" size=".02" mass=".1"/></body></body></worldbody>
<actuator><motor joint="x" ctrlrange="-1 1" ctrllimited="true" gear="10"/></actuator></mujoco>"""


def test_joints_that_nothing_drives_are_balanced_by_the_others(tmp_path):
    """By symmetry a pole stands a while without that: a push tells."""
    path, text, _ = written(tmp_path, POLE)
    assert tomllib.loads(text)["type"] == "lqr"
    assert "[[validation.push]]" in text
    assert passes(tmp_path, path, text)


def test_a_model_without_actuators_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ProblemError, match=r"no actuator.*add <actuator>"):
        written(tmp_path, STIFF.split("<actuator>")[0] + "</mujoco>")


ARM = """<mujoco><compiler angle="radian"/><option timestep=".002"/><worldbody><body pos="0 0 .3">
<joint name="yaw" axis="0 0 1" range="-3 3" limited="true"/><geom size=".04" mass="2"/>
<body><joint name="lift" axis="0 1 0" range="-1.5 1.5" limited="true"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="2"/><body name="hand" pos=".3 0 0">
<joint name="elbow" axis="0 1 0" range="-2.5 2.5" limited="true"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/><site name="tip" pos=".3 0 0"/>
</body></body></body></worldbody><actuator>{motors}</actuator></mujoco>"""


def arm(torque):
    limits = f'ctrlrange="-{torque} {torque}" ctrllimited="true"'
    return ARM.format(motors="".join(f'<motor joint="{j}" {limits}/>' for j in JOINTS))


JOINTS = ("yaw", "lift", "elbow")


@pytest.mark.long
def test_an_arm_draws_a_circle_where_it_has_room_and_one_that_is_too_weak_does_not_pass(tmp_path):
    """Straight out it is singular: another pose is found. The circle is seen in MuJoCo."""
    model, text, warnings = written(tmp_path, arm(40))
    assert not warnings
    assert "arms where they can work" in text
    file = tmp_path / "spec.toml"
    file.write_text(text)
    report = run_spec(read_spec(file).with_trial(fast=True, perturb={"mass": 0.1}), model)
    assert report.passed
    recording = report.runs[0].recording
    plant = Plant(model)
    places = []
    for q in recording.q[recording.t > 2.0]:
        plant.reset(q)
        places.append(plant.frame_position("tip"))
    away = np.array(places) - np.mean(places[: 2 * 500], axis=0)  # two turns
    radii = np.linalg.norm(away, axis=1)
    assert radii == pytest.approx(np.full(len(radii), np.mean(radii)), abs=2e-3)
    assert np.mean(radii) == pytest.approx(0.05 * 0.6, rel=0.05)  # of its reach
    model.write_text(arm(0.5 * np.abs(recording.u).max()))  # half of what it needs
    with pytest.raises(ProblemError, match="brakes it against gravity"):
        run_spec(read_spec(file).with_trial(fast=True), model)
    _, text, _ = written(tmp_path, re.sub(r' range="\S+ \S+" limited="true"', "", arm(40)))
    assert "limits.joint" not in text
    assert "joint_beyond" not in text
    narrow = arm(40).replace("-1.5 1.5", "-.02 .02").replace("-2.5 2.5", "-.02 .02")
    _, _, told = written(tmp_path, narrow)
    assert "No pose was found" in told[0]
    assert "tip" in told[0]


@pytest.mark.long
def test_a_robot_without_a_floor_stands_on_one_that_the_file_has(tmp_path):
    scene = mb.models.path("quadruped").read_text()
    alone = re.sub(r'<geom [^>]*type="plane"[^>]*/>', "", scene)
    assert alone != scene
    model, text, warnings = written(tmp_path, alone)
    assert not warnings
    assert tomllib.loads(text)["ground"]["feet"] == ["FL", "FR", "RL", "RR"]
    assert passes(tmp_path, model, text)


def test_tasks_are_those_of_the_kind_of_robot(tmp_path):
    with pytest.raises(ProblemError, match=r"'stand' of .*an arm; expected one of hold, track, re"):
        propose_spec(mb.models.path("scara"), task="stand")
    with pytest.raises(ProblemError, match=r"'juggle'; expected one of hold, stand"):
        propose_spec(mb.models.path("scara"), task="juggle")
    biped = mb.models.path("planar_biped")
    with pytest.raises(ProblemError, match="'squat' of 'planar_biped', which has no feet on a gro"):
        propose_spec(biped, task="squat")
    with pytest.raises(ProblemError, match="no gravity: nothing presses its feet on the ground"):
        _ = written(tmp_path, biped.read_text().replace("<worldbody>", NO_WEIGHT, 1), "stand")
    with pytest.raises(
        ProblemError, match=r"whole-body MPC of .*an arm; expected a robot with legs"
    ):
        propose_spec(mb.models.path("scara"), mpc=True)
    walker = mb.describe(mb.read_mjcf("quadruped"))
    assert activity_of(walker, None, mpc=True) == "trot"
    with pytest.raises(ProblemError, match=r"'stand' of .*expected one of trot"):
        activity_of(walker, "stand", mpc=True)
    with pytest.raises(
        ProblemError, match=r"'track' of 'quadruped'.*one of hold, stand, squat, lift"
    ):
        propose_spec(mb.models.path("quadruped"), task="track")
    held = tomllib.loads(propose_spec(mb.models.path("scara"), task="hold"))
    assert [task["type"] for task in held["task"]] == ["posture"]


def test_speeds_and_sizes_are_those_that_are_asked_for():
    quadruped, scara = mb.models.path("quadruped"), mb.models.path("scara")
    motion = MotionOptions(speed=-0.3, turn=0.2)
    text = propose_spec(quadruped, task="trot", motion=motion, ahead=(0.0, 1.0, 0.0))
    x, y, turns = tomllib.loads(text)["command"]
    assert (x["by"], y["by"]) == (0.0, -0.3)
    assert [each["by"] for each in turns] == [0.2, -0.2]
    with pytest.raises(ProblemError, match=r"speed = 9 m/s of 'quadruped': .* at most 2\.4 m/s"):
        propose_spec(quadruped, task="trot", motion=MotionOptions(speed=9.0))
    circle = MotionOptions(radius=0.04, frequency=0.25)
    (tool, *_) = tomllib.loads(propose_spec(scara, motion=circle))["task"]
    assert tool["reference"]["x"] == {"amplitude": 0.04, "frequency": 0.25, "ramp": 1.0}
    with pytest.raises(ProblemError, match=r"radius = 2 m of a circle of '.*', an arm of 0\.\d+ m"):
        propose_spec(scara, motion=MotionOptions(radius=2.0))
    with pytest.raises(
        ProblemError, match="turn = 1 with task 'track'; expected task trot or walk"
    ):
        propose_spec(scara, motion=MotionOptions(turn=1.0))
    with pytest.raises(ProblemError, match=r"frequency = 0\.0; expected a finite, positive number"):
        MotionOptions(frequency=0.0)
    with pytest.raises(ProblemError, match="speed = inf; expected a finite number"):
        MotionOptions(speed=np.inf)


JOINT = '<joint name="{}" axis="{}" range="-2 2"/>'


def walker_with_arms():
    """Return a walker on four legs with two arms, of four joints and of five."""
    arms, motors = "", ""
    for side, y, turns in (("left", 0.08, "1"), ("right", -0.08, "12")):
        joints = {f"{side}{k}": axis for k, axis in (("yaw", "0 0 1"), ("lift", "0 1 0"))}
        wrist = {f"{side}elbow": "0 1 0"} | {f"{side}{k}": "1 0 0" for k in turns}
        upper, lower = ("".join(JOINT.format(*each) for each in j.items()) for j in (joints, wrist))
        arms += (
            f'<body pos=".2 {y} .08">{upper}<geom type="capsule" size=".02" mass=".3"'
            ' fromto="0 0 0 .2 0 0"/>'
            f'<body name="{side}_hand" pos=".2 0 0">{lower}<site name="{side}_tip" pos=".15 0 0"/>'
            '<geom type="capsule" fromto="0 0 0 .15 0 0" size=".01" mass=".2"/></body></body>'
        )
        motors += "".join(f'<motor joint="{n}" ctrlrange="-9 9"/>' for n in (*joints, *wrist))
    text = mb.models.path("quadruped").read_text()
    text = text.replace('<site name="trunk"/>', f'<site name="trunk"/>{arms}')
    return text.replace("</actuator>", f"{motors}</actuator>")


def test_one_hand_of_a_robot_that_stands_moves_beside_its_base(tmp_path, monkeypatch):
    """It is the one with more joints; its load is that of the arm."""
    model = tmp_path / "model.xml"
    model.write_text(walker_with_arms())
    monkeypatch.setattr(propose, "_accepted", lambda facts, *_: facts)  # trials take long
    text = propose_spec(model, task="carry")
    assert "# another hand: site left_tip" in text
    spec = tomllib.loads(text)
    parse_spec(spec)
    base, tool, posture = spec["task"]
    assert (base["frame"], tool["frame"], posture["type"]) == ("trunk", "right_tip", "posture")
    assert "joints" not in posture
    assert posture["weight"] == 1e-3
    assert len(spec["contact"]) == 4
    assert spec["limits"] == {"joint": {}, "soft": [{"limits": "joints"}]}
    loads = spec["validation"]["perturb"]
    masses = [Plant(model, perturb=each).model.body_mass.sum() for each in ({}, loads)]
    assert np.diff(masses) == pytest.approx(0.1 * 0.5, rel=1e-3)  # an arm of 0.3 and 0.2 kg


def test_a_robot_whose_foot_is_a_line_does_not_stand_on_one(tmp_path):
    text = mb.models.path("humanoid").read_text()
    assert propose_spec(mb.models.path("humanoid"), task="lift")
    short = tmp_path / "short.xml"  # legs of five joints stand on heel and toe
    text = re.sub(r"<(joint|motor)[^>]*_ankle_roll[^>]*/>", "", text)
    short.write_text(re.sub(r"<key .*?/>", "", text, flags=re.DOTALL))
    with pytest.raises(ProblemError, match=r"'lift' of .*: while '.*foot.*' is up, .* no area"):
        propose_spec(short, task="lift")


def test_a_foot_leaves_the_ground_when_the_centre_of_mass_is_over_the_others():
    spec = tomllib.loads(propose_spec(mb.models.path("quadruped"), task="lift"))
    parse_spec(spec)
    assert "force_weight" not in spec["options"]  # points do not twist
    plant = Plant("quadruped")
    plant.reset(np.array(spec["start"]["q"]))
    motion = next(task for task in spec["task"] if task["type"] == "com")["reference"]
    feet = [task for task in spec["task"] if task.get("kind") == "geom"]
    places = np.array([plant.data.geom(foot["frame"]).xpos[:2] for foot in feet])
    off = [switch for switch in spec["mask"] if "off" in switch]
    assert len(off) == len(feet) == 4
    for k, switch in enumerate(off):
        assert switch["off"] == [f"{feet[k]['frame']} on floor"]
        done = [
            [s["by"] for s in motion[a] if s["start"] + s["duration"] <= switch["at"]] for a in "xy"
        ]
        center = plant.data.subtree_com[0][:2] + np.sum(done, axis=1)
        corners = np.vstack([np.delete(places, k, axis=0).T, np.ones(3)])
        shares = np.linalg.solve(corners, [*center, 1.0])
        assert shares.min() > 0.05
    last = [[s["by"] for s in motion[a]] for a in "xy"]
    assert np.sum(last, axis=1) == pytest.approx(0.0, abs=1e-3)
    (push,) = spec["validation"]["push"]
    assert np.linalg.norm(push["force"]) == pytest.approx(
        0.6 * 9.81 * plant.model.body_subtreemass[0], rel=0.01
    )


def test_the_weight_goes_from_foot_to_foot_as_slowly_as_soles_are_narrow():
    """The centre of pressure of the pendulum keeps within half of a sole's width."""
    model = mb.models.path("humanoid")
    spec = tomllib.loads(propose_spec(model, task="lift"))
    plant = Plant(model)
    plant.reset(np.array(spec["start"]["q"]))
    steps = next(task for task in spec["task"] if task["type"] == "com")["reference"]["y"]
    mass, feet = (
        plant.data.subtree_com[1],
        [t["frame"] for t in spec["task"] if "foot" in t.get("name", "")],
    )
    system = mb.read_mjcf(model)
    contacts = contacts_of(system, ground="floor", q=np.array(spec["start"]["q"]))
    points = np.array([np.array(each.gap(spec["start"]["q"])[1]).ravel() for each in contacts])
    half = {foot: np.ptp(points[:, 1][sides(points, foot, plant)]) / 2 for foot in feet}
    slowness = (mass[2] - points[:, 2].mean()) / 9.81

    def beyond(takes):
        """How far the centre of pressure is beyond a step of 1 m, where one takes so long."""
        x = np.linspace(0, 1, 2001)
        way = x**3 * (10 - 15 * x + 6 * x**2)
        pressure = way - slowness * np.gradient(np.gradient(way, x), x) / takes**2
        return pressure[5:-5].max() - 1

    for step in steps:
        room = 0.5 * min(half.values())
        assert abs(step["by"]) * beyond(step["duration"]) < room
        assert step["duration"] == 0.8 or abs(step["by"]) * beyond(step["duration"] - 0.2) > room
    assert max(step["duration"] for step in steps) > 0.8
    four = tomllib.loads(propose_spec(mb.models.path("quadruped"), task="lift"))
    wide = next(task for task in four["task"] if task["type"] == "com")["reference"]["y"]
    assert {step["duration"] for step in wide} == {0.8}


def sides(points, foot, plant):
    """Return which points are on the side of a foot."""
    return np.sign(points[:, 1]) == np.sign(plant.data.body(foot).xpos[1])


def test_arms_work_where_the_targets_of_their_servos_reach_and_carry_what_is_not_in_the_model(
    tmp_path,
):
    """A servo that turns its joint by 1 rad only: elsewhere nothing holds the arm."""
    model = tmp_path / "model.xml"
    servo = '<position joint="{}" kp="2000" kv="50" ctrllimited="true" ctrlrange="-1 1"/>'
    text = ARM.format(motors="".join(servo.format(name) for name in JOINTS))
    model.write_text(text.replace("<option", '<option integrator="implicitfast"'))
    plant = Plant(model)
    (limb,) = mb.describe(mb.read_mjcf(model)).limbs_of("arm")
    place = workplace(plant, limb, np.array([0.0, 0.3, 1.5]))
    assert place.margin > 1
    plant.reset(place.q)
    targets = place.q + plant.data.qfrc_bias / 2000.0
    assert np.abs(targets).max() < 1
    spec = tomllib.loads(propose_spec(model, task="carry"))
    (error,) = spec["validation"]["perturb"].values()
    laden = Plant(model, perturb=spec["validation"]["perturb"])
    gained = laden.model.body_subtreemass[0] - plant.model.body_subtreemass[0]
    assert gained == pytest.approx(0.1 * plant.model.body_subtreemass[0], rel=1e-3)
    assert error > 0
