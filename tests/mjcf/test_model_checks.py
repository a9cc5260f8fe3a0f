"""Models that no equation can be made of are refused with the element's name."""

import mujoco
import numpy as np
import pytest
from support.hard_cases import HARD_CASES

import mbcasadi as mb
from mbcasadi.errors import ModelError
from mbcasadi.mjcf import load, read
from mbcasadi.plant import Plant

ARM = """<mujoco model="{model}"><option gravity="0 0 {gravity}"/><worldbody><body name="arm">
<joint name="{joint}" axis="{axis} 1 0" damping="{damping}" range="-1 1" stiffness="1"
springref="{rest}"/>
<geom name="rod" size=".1" pos="1 0 {offset}"/><site name="tip" pos="0 {tip} 1"/>
</body></worldbody><actuator><motor name="one" joint="{joint}"/>
<motor name="two" joint="{joint}" gear="{gear}" ctrlrange="-1 {most}"/></actuator>
<equality><joint name="held" joint1="{joint}" polycoef="{held} 0 0 0 0"/></equality>
<keyframe><key name="home" qpos="{home}"/></keyframe></mujoco>"""
NUMBERS = {
    "gravity": -9.81,
    "axis": 0,
    "damping": 1,
    "rest": 0,
    "offset": 0,
    "tip": 0,
    "gear": 2,
    "most": 1,
    "held": 0,
    "home": 0,
}
NAMES = {"model": "arm", "joint": "elbow"}


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("gravity", "option: gravity"),
        ("axis", "joint 'elbow': axis"),
        ("damping", "joint 'elbow': damping"),
        ("rest", "joint 'elbow': qpos_spring"),
        ("offset", "(geom 'rod': pos|body 'arm': (ipos|inertia))"),
        ("tip", "site 'tip': pos"),
        ("gear", "actuator 'two': gear"),
        ("most", "actuator 'two': ctrlrange"),
        ("held", "equality 'held': data"),
        ("home", "key 'home': qpos"),
    ],
)
def test_nan_is_refused_with_the_element_that_holds_it(number, words):
    good = ARM.format(**NUMBERS, **NAMES)
    assert read(good).tree.nv == 1
    xml = ARM.format(**(NUMBERS | {number: "nan"}), **NAMES)
    try:
        model = mujoco.MjModel.from_xml_string(xml)
    except ValueError:
        pytest.fail("MuJoCo refuses it itself: the case is not needed")
    for source in (xml, model):
        with pytest.raises(ModelError, match=words + r" = .*nan.*; expected finite numbers"):
            read(source)


def test_nan_of_a_compiled_model_is_found_in_every_array_that_the_equations_read():
    model = mujoco.MjModel.from_xml_string(HARD_CASES["gravity compensation"])
    for field in ("body_mass", "body_inertia", "body_quat", "jnt_pos", "dof_armature", "qpos0"):
        broken = mujoco.MjModel.from_xml_string(HARD_CASES["gravity compensation"])
        getattr(broken, field).flat[-1] = np.nan
        with pytest.raises(ModelError, match=field.partition("_")[2] or field):
            read(broken)
    assert read(model).tree.nv == model.nv


def test_an_infinite_range_is_a_number_and_an_infinite_mass_is_not():
    model = mujoco.MjModel.from_xml_string(ARM.format(**NUMBERS, **NAMES))
    model.jnt_range[0] = [-np.inf, np.inf]
    assert np.all(np.isinf(read(model).joint_range))
    model.body_mass[1] = np.inf
    with pytest.raises(ModelError, match=r"body 'arm': mass = \[inf\]"):
        read(model)


@pytest.mark.parametrize("name", ["model", "joint"])
def test_a_file_that_is_not_utf_8_is_refused_in_our_words(name, tmp_path):
    path = tmp_path / "arm.xml"
    path.write_bytes(ARM.format(**NUMBERS, **(NAMES | {name: "modèle"})).encode("latin-1"))
    with pytest.raises(ModelError, match=r"b'mod\\xe8le' is not UTF-8 text; save the file"):
        load(path)
    with pytest.raises(ModelError, match="not UTF-8 text"):
        Plant(path)
    path.write_bytes(ARM.format(**NUMBERS, **(NAMES | {name: "modèle"})).encode())
    assert "modèle" in (mb.read_mjcf(path).name, *mb.read_mjcf(path).limits.joint_names)


def test_too_many_bodies_are_refused_before_mujoco_compiles_them(tmp_path):
    xml = f"<mujoco><worldbody>{'<body/>' * 100_000}</worldbody></mujoco>"
    path = tmp_path / "many.xml"
    path.write_text(xml)
    for source in (xml, path, str(path)):
        with pytest.raises(ModelError, match="the model has 100000 bodies; expected at most 20000"):
            mb.read_mjcf(source)


def test_too_many_degrees_of_freedom_are_refused():
    bodies = "".join(f'<body pos="{i} 0 0"><joint/><geom size=".1"/></body>' for i in range(1001))
    with pytest.raises(ModelError, match="1001 degrees of freedom; expected at most 1000"):
        mb.read_mjcf(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")


def test_the_contact_of_a_flex_is_named():
    flex = """<mujoco><worldbody><flexcomp name="cloth" type="grid" count="3 3 1" dim="2"
        spacing=".1 .1 .1" pos="0 0 1" mass="1">{}</flexcomp></worldbody></mujoco>"""
    items = mb.read_mjcf(flex.format("")).coverage.by("plant only")
    assert "flex 'cloth': contact" in [item.feature for item in items]
    silent = '<contact contype="0" conaffinity="0" selfcollide="none"/>'
    items = mb.read_mjcf(flex.format(silent)).coverage.by("plant only")
    assert "flex 'cloth': contact" not in [item.feature for item in items]


def test_a_chain_deeper_than_pythons_stack_is_read():
    spec, links = mujoco.MjSpec(), 600
    body = spec.worldbody
    for _ in range(links):
        body = body.add_body(pos=[0.01, 0, 0.02])
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.01, 0, 0])
        body.add_joint(axis=[0, 1, 0])
    system, model = mb.read_mjcf(spec), spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    h = system.bias_force(np.zeros(links), np.zeros(links)).full().ravel()
    np.testing.assert_allclose(h, data.qfrc_bias, rtol=1e-9, atol=1e-12)
