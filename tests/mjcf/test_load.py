"""Any source reaches MuJoCo's compiler, and what the compiler says reaches the user."""

import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
from support.hard_cases import arm, mjcf

from mbcasadi.errors import ModelError
from mbcasadi.mjcf import load, read

XML = mjcf(arm())
WARNED = XML.replace("<mujoco>", '<mujoco><compiler settotalmass="3"/>')
URDF = """<robot name="pair"><link name="base"/><link name="arm"><inertial><origin xyz="0 .1 0"/>
<mass value="2"/><inertia ixx=".1" iyy=".2" izz=".25" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 1"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="5" velocity="3"/></joint></robot>"""


def test_all_kinds_of_source_give_the_same_numbers(tmp_path: Path) -> None:
    path = tmp_path / "pair.xml"
    path.write_text(XML)
    binary = tmp_path / "pair.mjb"
    mujoco.mj_saveModel(mujoco.MjModel.from_xml_string(XML), str(binary))
    sources = [
        XML,
        "\n  " + XML,
        path,
        str(path),
        binary,
        mujoco.MjSpec.from_string(XML),
        mujoco.MjModel.from_xml_string(XML),
    ]
    reference = read(XML).tree
    for source in sources:
        tree = read(source).tree
        for body, expected in zip(tree.bodies, reference.bodies, strict=True):
            assert np.array_equal(body.inertia, expected.inertia)
            assert np.array_equal(body.quat, expected.quat)


def test_a_urdf_is_read_with_its_limits(tmp_path: Path) -> None:
    path = tmp_path / "pair.urdf"
    path.write_text(URDF)
    data = read(path)
    assert [joint.name for joint in data.tree.joints] == ["j"]
    assert data.joint_range.tolist() == [[-1.0, 2.0]]
    assert data.tree.name == "pair"


def test_a_nameless_model_is_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "walker.xml"
    path.write_text(XML)
    assert read(path).tree.name == "walker"
    assert read(XML).tree.name == "model"


def test_relative_paths_inside_a_model_are_relative_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_text(f"<mujoco><worldbody>{arm()}</worldbody></mujoco>")
    whole = tmp_path / "whole.xml"
    whole.write_text('<mujoco><include file="part.xml"/></mujoco>')
    assert read(whole).tree.nv == 2


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere/robot.xml", r"^no file 'nowhere/robot.xml'; expected the path"),
        ("<mujoco", "the XML text: XML parse error"),
        ("<mujoco><worlbody/></mujoco>", r"(?s)unrecognized element.*worlbody"),
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "mass and inertia"),
        ("<mujoco><asset><mesh file='absent.stl'/></asset></mujoco>", "absent.stl"),
    ],
)
def test_what_mujoco_refuses_is_a_model_error_with_its_message(source: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        load(source)


def test_a_spec_that_does_not_compile_is_a_model_error() -> None:
    spec = mujoco.MjSpec.from_string(XML)
    spec.modelname = "broken"
    spec.worldbody.add_body().add_joint()
    with pytest.raises(ModelError, match=r"the MjSpec 'broken': .*mass and inertia"):
        load(spec)


def test_an_unreadable_file_is_a_model_error(tmp_path: Path) -> None:
    path = tmp_path / "noise.xml"
    path.write_bytes(b"\x00\xff not a model")
    with pytest.raises(ModelError, match=r"noise\.xml"):
        load(path)


@pytest.mark.parametrize("content", [b"noise" * 100, b""])
def test_a_broken_binary_model_is_a_model_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "noise.mjb"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"noise\.mjb"):
        load(path)


@pytest.mark.parametrize("source", [None, 3, b"<mujoco/>"])
def test_a_source_of_another_type_is_a_model_error(source: object) -> None:
    with pytest.raises(ModelError, match=r"is of type .* expected a path, XML text"):
        load(source)  # type: ignore[arg-type]


def compiler_warns(source: str) -> bool:
    """Whether this version of MuJoCo warns about a source; versions differ in what they say."""
    heard: list[str] = []
    previous = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(heard.append)
    try:
        mujoco.MjModel.from_xml_string(source)
    finally:
        mujoco.set_mju_user_warning(previous)
    return bool(heard)


@pytest.mark.parametrize("as_spec", [False, True])
def test_compiler_warnings_enter_the_coverage_and_nothing_is_left_behind(
    as_spec: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if not compiler_warns(WARNED):
        pytest.skip(f"MuJoCo {mujoco.__version__} does not warn about this model")
    monkeypatch.chdir(tmp_path)
    source = mujoco.MjSpec.from_string(WARNED) if as_spec else WARNED
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read(source).coverage.warnings
    assert len(found) == 1
    assert "settotalmass" in found[0]
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_the_user_keeps_the_warning_handler_that_was_set() -> None:
    heard: list[str] = []
    previous = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(heard.append)
    try:
        with pytest.raises(ModelError):
            load("<mujoco")
        load(WARNED)
        assert heard == []
        assert mujoco.get_mju_user_warning() == heard.append
    finally:
        mujoco.set_mju_user_warning(previous)
