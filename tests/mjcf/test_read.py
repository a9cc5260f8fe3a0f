"""Numbers of a compiled model arrive in the description, each where it belongs."""

import mujoco
import numpy as np
import pytest
from support.hard_cases import ACTUATORS, EQUALITIES, FLAGS, HARD_CASES, JOINTS, TENDONS, arm, mjcf

from mbcasadi.description import Connect, JointCoupling, TendonCoupling, Weld
from mbcasadi.mjcf import read
from mbcasadi.mjcf.compat import VERSION

ROUNDING = 1e-14
# MuJoCo's compiler diagonalises the inertia by iteration; version 3.10 stops at 1e-9.
DIAGONALISED = 1e-8 if mujoco.__version__.startswith("3.10.") else ROUNDING


def test_indices_and_sizes_are_those_of_mujoco() -> None:
    for name, xml in HARD_CASES.items():
        model, tree = mujoco.MjModel.from_xml_string(xml), read(xml).tree
        assert (tree.nq, tree.nv) == (model.nq, model.nv), name
        assert [j.dof for j in tree.joints] == model.jnt_dofadr.tolist(), name
        assert [j.qpos for j in tree.joints] == model.jnt_qposadr.tolist(), name
        assert all(body.parent < i for i, body in enumerate(tree.bodies[1:], 1)), name


def test_the_inertia_is_that_of_the_file() -> None:
    body = read(mjcf(arm())).tree.bodies[1]
    expected = [[0.012, 0.001, -0.002], [0.001, 0.02, 0.003], [-0.002, 0.003, 0.015]]
    assert np.allclose(body.inertia, expected, rtol=0.0, atol=DIAGONALISED)
    assert body.com.tolist() == [0.05, -0.02, 0.11]


def test_nameless_elements_get_unique_names() -> None:
    xml = mjcf(
        '<body><joint/><geom size=".1"/><body name="body1"><joint name="joint0"/>'
        '<geom size=".1"/><site/></body></body>'
    )
    tree = read(xml).tree
    assert [body.name for body in tree.bodies] == ["world", "body1_", "body1"]
    assert [joint.name for joint in tree.joints] == ["joint0_", "joint0"]
    assert tree.frames[0].name == "site0"


def test_sites_stand_before_bodies_in_mujocos_order() -> None:
    tree = read(mjcf(arm())).tree
    assert [(f.kind, f.name) for f in tree.frames] == [
        ("site", "base"),
        ("site", "s1"),
        ("site", "s2"),
        ("body", "world"),
        ("body", "one"),
        ("body", "two"),
    ]


def test_equalities_keep_order_kind_and_activity() -> None:
    found = read(EQUALITIES["several, one switched off"]).equalities
    assert [type(e) for e in found] == [Weld, Connect, JointCoupling, Connect]
    assert [e.active for e in found] == [True, False, True, True]
    disabled = read(FLAGS['flag equality="disable"']).equalities
    assert [e.active for e in disabled] == [False]


def test_a_coupling_of_one_tendon_has_no_second_tendon() -> None:
    both, single = read(EQUALITIES["tendon couplings"]).equalities
    assert isinstance(both, TendonCoupling)
    assert isinstance(single, TendonCoupling)
    assert (both.tendon1, both.tendon2) == (0, 1)
    assert (single.tendon1, single.tendon2) == (1, None)


def test_joint_ranges_are_infinite_where_nothing_limits() -> None:
    xml = mjcf(
        arm(
            '<joint name="a" range="-30 60" limited="true"/>',
            '<joint name="b" type="ball" range="0 50" limited="true"/>',
        )
    )
    expected = [np.deg2rad([-30.0, 60.0]), [-np.inf, np.inf]]
    assert np.allclose(read(xml).joint_range, expected, rtol=0.0, atol=ROUNDING)


def test_keyframes_and_timestep_are_kept() -> None:
    xml = mjcf(
        arm(),
        '<keyframe><key name="home" qpos=".1 .2"/><key qpos=".3 .4"/></keyframe>',
        '<option timestep=".004"/>',
    )
    data = read(xml)
    assert {k: v.tolist() for k, v in data.tree.keyframes.items()} == {
        "home": [0.1, 0.2],
        "key1": [0.3, 0.4],
    }
    assert data.timestep == 0.004


def test_reflected_armature_and_damping_belong_to_the_target() -> None:
    data = read(ACTUATORS["armature and damping of actuators"])
    joints = {joint.name: joint for joint in data.tree.joints}
    a, hip = joints["a"].dof, joints["hip"].dof
    assert np.isclose(data.tree.armature[a], 9 * 0.1 + 4 * 0.05, rtol=ROUNDING)
    assert np.isclose(data.tree.damping[a], 9 * 0.2 + 4 * 0.1, rtol=ROUNDING)
    assert np.allclose(data.tree.armature[hip : hip + 3], 4 * 0.1, rtol=ROUNDING)
    assert np.isclose(data.tree.tendons[0].armature, 0.1 + 4 * 0.2, rtol=ROUNDING)
    assert all(motor.armature == 0.0 == motor.damping for motor in data.actuators)


def test_only_the_coverage_of_what_the_model_holds_is_reported() -> None:
    items = read(JOINTS["armature and damping"]).coverage.items
    features = [item.feature for item in items]
    assert "joint 'a', 'b': armature" in features
    assert not any("stiffness" in feature for feature in features)


def test_tendon_armature_between_branches_is_reported() -> None:
    feature = "tendon 't': armature across branches"
    across = read(ACTUATORS["armature and damping of actuators"]).coverage.by("used")
    along = read(TENDONS["fixed tendons with spring, dead band, damper and armature"]).coverage
    assert feature in [item.feature for item in across]
    assert not any("branches" in item.feature for item in along.items)


@pytest.mark.parametrize(
    ("xml", "feature"),
    [
        (mjcf(arm('<joint name="a" range="-1 1" limited="true"/>')), "joint 'a': limits"),
        (mjcf(arm('<joint name="a" frictionloss=".1"/>')), "joint 'a': frictionloss"),
        (mjcf(arm() + '<geom size=".1"/>'), "geoms and pairs (1): contact"),
        (JOINTS["mocap body"], "body 'target': mocap"),
        (
            mjcf(
                arm('<joint name="a" range="-1 1" limited="true"/>'),
                '<sensor><rangefinder name="end" site="base"/></sensor>',
            ),
            "sensor 'end': rangefinder",
        ),
        (
            mjcf(
                arm(),
                '<tendon><spatial name="rope" limited="true" range="0 1"><site site="s1"/>'
                '<site site="base"/></spatial></tendon>',
            ),
            "tendon 'rope': limits",
        ),
    ],
)
def test_forces_of_mujocos_solver_are_plant_only(xml: str, feature: str) -> None:
    coverage = read(xml).coverage
    item = next(item for item in coverage.by("plant only") if item.feature == feature)
    assert item.advice
    assert not coverage.by("refused")


def test_the_caller_owns_the_arrays() -> None:
    model = mujoco.MjModel.from_xml_string(mjcf(arm()))
    tree = read(model).tree
    before = tree.bodies[1].pos.copy()
    model.body_pos[1] += 1.0
    assert np.array_equal(tree.bodies[1].pos, before)


CURRENT, WARM, SERVO = (
    'inductance="0 .01"',
    'thermal="2 3 0 .004 25 22"',
    'input="pos" controller="3 2 .1 0 .4 12"',
)
SINCE_4 = {
    WARM: "a temperature",
    'lugre="10 1 .1 .2 .05"': "friction of bristles",
    SERVO: "a controller",
    f"{CURRENT} {WARM}": "",
    f"{CURRENT} {SERVO}": "",
}


@pytest.mark.parametrize(
    ("options", "feature"), ({"": "", CURRENT: ""} | (SINCE_4 if VERSION >= (4, 0) else {})).items()
)
def test_a_motor_is_refused_where_its_force_is_not_affine(options: str, feature: str) -> None:
    """The current is a state: what makes it depends on no present force."""
    motor = f'<dcmotor name="m" joint="a" resistance="2" motorconst=".1" {options}/>'
    xml = mjcf(arm('<joint name="a" range="-90 90"/>'), f"<actuator>{motor}</actuator>")
    refused = {item.feature for item in read(xml).coverage.by("refused")}
    assert refused == ({f"actuator 'm': dcmotor with {feature}"} if feature else set())
