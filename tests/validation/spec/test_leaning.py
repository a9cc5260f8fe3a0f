"""A base leans where an upright one would bring hips to their stops or their motors' limits."""

import re
import tomllib

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control.regulators import equilibrium
from mbcasadi.errors import ProblemError
from mbcasadi.validation.spec import parse_spec, propose_spec
from mbcasadi.validation.spec.leaning import LEANS, UPRIGHT, Stance
from mbcasadi.validation.spec.standing_load import StandingLoad

FEET = ("left_foot", "right_foot")
WAY = np.array([0.0, -0.1])  # m, over the right foot
WEAK = 60  # N m, of the roll of the hips
NARROW = 0.05  # rad, of the roll of the hips that brings them over it


def model(narrow=None, torque=150):
    """Return MJCF of a humanoid whose hips may roll inward by so much, rad, with so much, N m."""
    text = mb.models.path("humanoid").read_text()
    text = re.sub(r'(joint="\w+_hip_roll" ctrlrange=)"[^"]*"', rf'\1"-{torque} {torque}"', text)
    if narrow is not None:
        for side, low, high in (("left", -narrow, 1.0), ("right", -1.0, narrow)):
            joint = re.search(rf'<joint name="{side}_hip_roll"[^>]*>', text).group()
            bare = re.sub(r' (range|limited)="[^"]*"', "", joint)
            ranged = bare.replace("/>", f' limited="true" range="{low} {high}"/>')
            text = text.replace(joint, ranged)
    return text


def stance(side="right", text=None, **limits):
    """Return a humanoid that one foot carries."""
    system = mb.read_mjcf(text or model(**limits))
    q = np.array(next(iter(system.tree.keyframes.values()), system.tree.q0)).ravel()
    feet = mb.contacts_of(system, ground="floor")
    carry = [each for each in feet if f"{side}_foot" in each.bodies]
    return Stance(system, q, system.tree.bodies[1].name, FEET, carry)


def test_hips_with_little_room_make_the_base_lean_over_the_foot():
    free, narrow = stance(), stance(narrow=NARROW)
    assert np.all(free.lean_over(WAY).lean == 0.0)
    lean = narrow.lean_over(WAY).lean
    assert lean[0] > 0.02  # about x, towards the foot
    upright, leaning = (narrow.pose_over(WAY, level).nearer for level in (UPRIGHT, LEANS))
    assert upright > 0.02  # rad, nearer to the stop
    assert leaning < 1e-3
    mirrored = stance("left", narrow=NARROW).lean_over(-WAY).lean
    np.testing.assert_allclose(mirrored[0], -lean[0], atol=0.01)
    assert np.all(narrow.lean_over(0 * WAY).lean == 0.0)


def test_loads_on_one_foot_are_those_of_an_equilibrium():
    one = stance()
    center = np.array(one.system.center_of_mass(one.q, np.zeros(one.system.nv))[0]).ravel()
    q = one.q.copy()
    ankle = np.array(one.system.frame("right_foot", "body").pose(q)[0]).ravel()
    assert abs(center - ankle)[1] > 0.05  # the wrench is not the weight alone
    held = equilibrium(one.system, q, contacts=[each.as_contact() for each in one.carry])
    load = StandingLoad(one.system, one.carry)
    beyond = load.excess(held.q, share=0.0) * np.abs(one.system.limits.ctrl).max(axis=1)
    np.testing.assert_allclose(beyond, np.abs(held.u), atol=1e-3)
    assert np.abs(held.u).max() > 1.0


def test_weak_hips_make_the_base_lean_over_the_foot():
    strong, weak = stance(torque=150), stance(torque=WEAK)
    assert strong.pose_over(WAY, UPRIGHT).load == 0.0
    assert weak.pose_over(WAY, UPRIGHT).load > 0.01
    found = weak.lean_over(WAY)
    assert found.lean[0] > 0.02
    assert found.load < 1e-3  # `LOADED` of the torque is enough
    assert not found.overloaded


def test_a_torso_beyond_its_stops_is_no_pose_that_overloads_its_servo():
    """The way that moves the joints least swings the torso, which no foot moves."""
    text = model()
    joint, motor = (
        re.search(rf'<{kind} [^>]*name="waist_roll"[^>]*>', text).group()
        for kind in ("joint", "motor")
    )
    little = re.sub(r'range="[^"]*"', 'range="-.001 .001"', joint)
    servo = '<position name="waist_roll" joint="waist_roll" kp="9000" ctrlrange="-.001 .001"/>'
    one = stance(text=text.replace(joint, little).replace(motor, servo))
    assert stance().pose_over(WAY, UPRIGHT).there
    found = one.pose_over(WAY, UPRIGHT)
    assert found.there
    assert not found.overloaded


def test_hips_that_cannot_carry_the_robot_are_refused(tmp_path):
    path = tmp_path / "weak.xml"
    path.write_text(model(torque=1))
    with pytest.raises(
        ProblemError, match=r"is up, the weight is more than '.*_hip_roll' can carry"
    ):
        propose_spec(path, task="lift")


def test_the_file_of_a_lift_leans_while_the_weight_moves(tmp_path):
    path = tmp_path / "narrow.xml"
    path.write_text(model(NARROW))
    spec = tomllib.loads(propose_spec(path, task="lift"))
    parse_spec(spec)
    base, com = spec["task"][:2]
    turns, steps = base["reference"]["rx"], com["reference"]["y"]
    for turn, step in zip(turns, steps, strict=True):
        assert (turn["start"], turn["duration"]) == (step["start"], step["duration"])
        assert turn["by"] * step["by"] < 0.0  # it leans towards the foot
    assert sum(turn["by"] for turn in turns) == pytest.approx(0.0, abs=1e-3)
    wide = tomllib.loads(propose_spec(mb.models.path("humanoid"), task="lift"))
    assert "reference" not in wide["task"][0]
    up, *along = wide["options"]["force_weight"]  # its soles do not twist against each other
    assert up == 0
    assert min(along) > 0
