"""What a model says of its robot: the same whatever its names, its order, its base frame."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.model_variants import renamed, reversed_bodies, turned_base

import mbcasadi as mb
from mbcasadi.errors import ProblemError

KINDS = {
    "arm_gripper": "arm",
    "cart_pole": "other",
    "five_bar": "other",
    "humanoid": "humanoid",
    "planar_biped": "biped",
    "quadrotor": "drone",
    "quadruped": "quadruped",
    "scara": "arm",
}
HAND = """<mujoco><worldbody><body name="palm">{wrist}<geom size=".02"/>{fingers}</body>{more}
</worldbody><actuator>{motors}</actuator></mujoco>"""
FINGER = """<body pos="{x} .02 0"><joint name="{n}a" axis="1 0 0"/><geom size=".01" pos="0 0 .03"/>
<body pos="0 0 .04"><joint name="{n}b" axis="1 0 0"/><geom name="{n}tip" size=".01" pos="0 0 .03"/>
<site name="{n}end" pos="0 0 .035"/></body></body>"""
CART = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/><body pos="0 0 .1"><freejoint/>
<geom type="box" size=".3 .2 .05"/>{wheels}<geom name="ball" size=".04" pos=".25 0 -.06"/></body>
</worldbody><actuator>
<velocity joint="l" kv="1"/><velocity joint="r" kv="1"/></actuator></mujoco>"""
WHEEL = """<body pos="-.2 {y} 0"><joint name="{n}" axis="0 1 0"/>
<geom type="{shape}" size=".1 {size}" euler="90 0 0"/></body>"""


def robot(model):
    return mb.describe(mb.read_mjcf(model))


def structure(description):
    """What may not hang on names or on the order of bodies."""
    return description.kind, sorted(
        (
            limb.role,
            limb.side,
            len(limb.joints),
            len(limb.fingers),
            round(limb.length, 9),
            limb.foot.shape if limb.foot else "",
        )
        for limb in description.limbs
    )


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.every(3)
def test_the_kind_hangs_neither_on_names_nor_on_the_order_of_bodies(name):
    path = mb.models.path(name)
    expected = robot(path)
    assert expected.kind == KINDS[name]
    assert structure(robot(renamed(path))) == structure(expected)
    assert structure(robot(reversed_bodies(path))) == structure(expected)


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_sides_are_those_of_the_robot_and_not_of_its_base_frame(name):
    path = mb.models.path(name)
    upright, turned = robot(path), robot(turned_base(path, 0.5 * np.pi))
    assert [limb.side for limb in turned.limbs] == [limb.side for limb in upright.limbs]
    np.testing.assert_allclose(turned.left, upright.left, atol=1e-9)
    np.testing.assert_allclose(upright.ahead, [1, 0], atol=1e-6)
    places = {limb.name: limb.side for limb in upright.limbs}
    for limb, side in places.items():
        assert side == ("left" if limb.startswith(("FL", "RL", "left")) else "right")


def test_feet_are_points_and_soles_where_shapes_are_round_and_flat():
    quadruped, humanoid = (robot(mb.models.path(name)) for name in ("quadruped", "humanoid"))
    assert [foot.shape for foot in quadruped.feet] == ["point"] * 4
    assert [foot.shape for foot in humanoid.feet] == ["flat"] * 2
    assert all(len(foot.points) >= 3 for foot in humanoid.feet)


def test_three_fingers_are_a_hand_and_two_a_gripper_with_or_without_a_wrist():
    wrist = '<joint name="wrist" axis="0 0 1"/>'
    for count, kind in ((3, "hand"), (2, "gripper")):
        fingers = "".join(FINGER.format(x=0.03 * k, n="fgh"[k]) for k in range(count))
        motors = "".join(f'<motor joint="{n}{e}"/>' for n in "fgh"[:count] for e in "ab")
        fixed = HAND.format(wrist="", fingers=fingers, motors=motors, more="")
        turning = HAND.format(
            wrist=wrist, fingers=fingers, motors=motors + '<motor joint="wrist"/>', more=""
        )
        for model in (fixed, turning):
            found = robot(model)
            assert found.kind == kind
            assert {(limb.role, limb.tool.frame) for limb in found.limbs} == {
                ("finger", f"{n}end") for n in "fgh"[:count]
            }
    ball = '<body name="ball" pos="0 0 1"><freejoint/><geom size=".05"/></body>'
    assert robot(fixed.replace("</worldbody>", ball + "</worldbody>")).objects == ("ball",)


FOREARM = """<mujoco><worldbody><body name="upper"><joint name="a" axis="0 1 0"/>
<joint name="b" axis="1 0 0"/><geom size=".03" pos="0 0 .1"/>
<body name="lower" pos="0 0 .3"><joint name="c" axis="0 1 0"/><joint name="d" axis="0 0 1"/>
<geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/><geom size=".03" pos=".3 0 0"/>{more}</body>
</body></worldbody><actuator>{motors}</actuator></mujoco>"""


def test_a_tool_is_a_point_that_the_limb_can_move_in_all_directions():
    motors = "".join(f'<motor joint="{name}"/>' for name in "abcd")
    site, body = '<site name="tip" pos=".3 0 0"/>', '<body name="hand" pos=".32 0 0"/>'
    on_axes = '<site name="elbow" pos="0 0 0"/>'
    for more, tool in {
        "": ("geom2", "geom"),
        site: ("tip", "site"),
        body: ("hand", "body"),
        on_axes: ("geom2", "geom"),
    }.items():
        model = FOREARM.format(more=more, motors=motors)
        (arm,) = robot(model).limbs
        assert (arm.tool.frame, arm.tool.kind) == tool
        assert len(arm.joints) == 4


def test_two_long_limbs_on_a_fixed_base_are_arms_beside_a_head():
    def limb(name, count, y):
        inner = ""
        for k in reversed(range(count)):
            place = f"0 {y} 0" if k == 0 else "0 0 .2"
            joint = f'<joint name="{name}{k}" axis="{k % 2} {1 - k % 2} 0"/>'
            inner = f'<body pos="{place}">{joint}<geom size=".05" pos="0 0 .2"/>{inner}</body>'
        return inner, "".join(f'<motor joint="{name}{k}"/>' for k in range(count))

    for joints, roles in ((5, ["head", "arm", "arm"]), (3, ["finger"] * 3)):
        limbs = [limb("h", 1, 0), limb("r", joints, -0.3), limb("l", joints, 0.3)]
        bodies, motors = map("".join, zip(*limbs, strict=True))
        found = robot(HAND.format(wrist="", fingers=bodies, motors=motors, more=""))
        assert [each.role for each in found.limbs] == roles
        assert found.kind == ("bimanual" if joints == 5 else "hand")


def test_what_is_round_about_an_endless_hinge_and_low_is_a_wheel():
    for shape, size, kind in (("cylinder", ".02", "wheeled base"), ("box", ".1 .02", "other")):
        wheels = "".join(
            WHEEL.format(n=n, y=y, shape=shape, size=size) for n, y in (("l", 0.25), ("r", -0.25))
        )
        found = robot(CART.format(wheels=wheels))
        if kind == "other":
            assert found.kind != "wheeled base"
        else:
            assert found.kind == kind
            assert [(limb.role, limb.side) for limb in found.limbs] == [
                ("wheel", "left"),
                ("wheel", "right"),
            ]


def test_a_description_is_a_text_and_a_system_of_equations_has_none():
    text = robot(mb.models.path("quadruped")).text
    assert text.startswith("quadruped: a quadruped, floating base (trunk)")
    assert text.count("point foot") == 4
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    with pytest.raises(ProblemError, match="read_mjcf"):
        mb.describe(mb.from_lagrangian(q, v, kinetic=0.5 * v**2))


def test_a_base_whose_axis_points_back_is_said_to_be_a_guess():
    spec = mujoco.MjSpec.from_file(str(mb.models.path("quadruped")))
    assert not mb.describe(mb.read_mjcf(spec)).notes
    spec.body("trunk").quat = [0.0, 0.0, 0.0, 1.0]
    for key in list(spec.keys):
        spec.delete(key)
    system = mb.read_mjcf(spec)
    guessed = mb.describe(system)
    assert "a guess" in guessed.notes[0]
    said = mb.describe(system, ahead=[1.0, 0.0, 0.5])  # of the base, level or not
    assert not said.notes
    np.testing.assert_allclose(said.ahead, [-1, 0], atol=1e-12)
    np.testing.assert_allclose(said.left, [0, -1], atol=1e-12)
    sides = [robot.limbs[0].side for robot in (guessed, said)]
    assert (said.limbs[0].name, *sides) == ("FL_calf", "right", "left")
    with pytest.raises(ProblemError, match=r"ahead = \[.*\] of 'quadruped' is vertical"):
        mb.describe(system, ahead=[0.0, 0.1, 1.0])
    with pytest.raises(ProblemError, match="of 'scara', whose base is fixed"):
        mb.describe(mb.read_mjcf("scara"), ahead=[1.0, 0.0, 0.0])
