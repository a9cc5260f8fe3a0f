"""`mbcasadi inspect` and `mbcasadi check` as a user runs them."""

import json
import os
import subprocess
import sys

import casadi as ca
import mujoco
import numpy as np
import pytest
from typer.testing import CliRunner

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.cli.app import app

RUN = CliRunner()
REFUSED = ["actuator_force", "actuator_bias", "actuation"]  # of an actuator without equation

SLIDING_RING = """
<mujoco model="ring">
  <worldbody>
    <body name="ring"><joint name="x" type="slide" axis="1 0 0" range="-1 1"/>
      <geom size="0.1" mass="1"/></body>
    <body name="rod" pos="0 0 1"><joint name="hinge" type="hinge" axis="0 1 0" stiffness="3"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="0.4"/></body>
  </worldbody>
  <equality><joint name="gear" joint1="x" joint2="hinge" polycoef="0 0.2 0.1 0 0"/></equality>
  <actuator><motor name="push" joint="x" ctrlrange="-2 3"/></actuator>
</mujoco>
"""


@pytest.fixture
def ring(tmp_path):
    path = tmp_path / "ring.xml"
    path.write_text(SLIDING_RING)
    return str(path)


def invoke(*arguments):
    return RUN.invoke(app, list(arguments))


def test_inspect_says_that_three_rows_of_the_four_bar_have_rank_two():
    result = invoke("inspect", "four_bar")
    assert result.exit_code == 0
    assert (
        "3 rows, rank 2: row 1 vanishes here (initial pose); rank 2 at 5 random closed poses"
        in result.stdout
    )


def test_ranks_differ_where_a_loop_is_open_and_where_it_is_closed():
    from mbcasadi.cli.inspection import CLOSED, close_configuration, jacobian_rank, residual
    from mbcasadi.system import read_mjcf

    system = read_mjcf(models.path("spatial_loop"))
    opened = np.add(system.tree.q0, [0.3, -0.2, 0.1, 0.4])
    assert residual(system, opened) > 1e-2
    closed = close_configuration(system, opened)
    assert residual(system, closed) < CLOSED
    assert jacobian_rank(system, closed) < jacobian_rank(system, opened) <= system.nc


def test_a_pose_is_closed_where_whole_steps_of_newton_grow():
    from mbcasadi.cli.inspection import CLOSED, close_configuration, residual
    from mbcasadi.system import from_lagrangian

    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    system = from_lagrangian(q, v, kinetic=v**2 / 2, potential=0, phi=ca.atan(q))
    assert residual(system, close_configuration(system, np.array([2.0]))) < CLOSED


def test_inspect_gives_sizes_limits_and_coverage_as_json(ring):
    result = invoke("inspect", ring, "--json")
    found = json.loads(result.stdout)
    assert found["sizes"] == {"nq": 2, "nv": 2, "nu": 1, "na": 0, "nc": 1}
    assert found["rank_text"].startswith("1 row, rank 1: all independent here (init")
    assert found["rank_text"].endswith("rank 1 at 5 random closed poses")
    assert found["controls"] == [
        {"name": "push", "u_min": -2.0, "u_max": 3.0, "force_min": None, "force_max": None}
    ]
    assert found["joints"][0] == {"name": "x", "min": -1.0, "max": 1.0}
    assert {item["treatment"] for item in found["coverage"]} == {"used", "plant only"}
    assert set(found["operations"]) == {"M", "h", "phi", "A", "c"}


def test_inspect_names_frames_feet_and_actuators_by_kind():
    found = json.loads(invoke("inspect", "quadruped", "--json").stdout)
    assert list(found["actuators"]) == ["motor"]
    assert len(found["actuators"]["motor"]) == 12
    assert {"kind": "site", "name": "FL", "body": "FL_foot"} in found["frames"]
    assert [foot["geom"] for foot in found["feet"]] == ["FL", "FR", "RL", "RR"]
    assert found["keyframes"] == ["stand"]
    shown = invoke("inspect", "quadruped").stdout
    for text in (
        "motor actuators (12): FL_hip",
        "sites (5): trunk",
        "key frames: stand",
        "be feet",
    ):
        assert text in shown


def test_inspect_says_what_robot_it_is_and_draws_it(tmp_path):
    picture = tmp_path / "robot.svg"
    result = invoke("inspect", "quadruped", "--json", "--image", str(picture))
    robot = json.loads(result.stdout)["robot"]
    assert (robot["kind"], robot["ahead"]) == ("quadruped", [1.0, 0.0])
    assert [limb["foot"]["geoms"] for limb in robot["limbs"]] == [["FL"], ["FR"], ["RL"], ["RR"]]
    drawn = picture.read_text()
    assert all(f"<!-- left leg {name}" in drawn for name in ("FL", "RL"))  # texts are comments
    shown = invoke("inspect", "scara").stdout
    assert "scara: an arm, fixed base (the world)" in shown
    wrong = invoke("inspect", "scara", "--image", str(tmp_path / "scara.bmp"))
    assert wrong.exit_code == 2
    assert ".png, .svg, .pdf" in wrong.stderr


def test_places_of_limbs_in_the_picture_are_those_of_mujoco():
    from mbcasadi.anatomy.links import standing
    from mbcasadi.cli.robot_picture import _parts

    model = mujoco.MjModel.from_xml_path(str(mb.models.path("quadruped")))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    system = mb.read_mjcf(mb.models.path("quadruped"))
    parts = {part.label: part for part in _parts(standing(system.tree), mb.describe(system))}
    radius = model.geom("FL").size[0]
    for name in ("FL", "FR", "RL", "RR"):
        (part,) = (each for label, each in parts.items() if name in label)
        low = data.geom(name).xpos - [0, 0, radius]
        assert np.allclose(part.feet, low, atol=1e-9)
        joints = [j for j in range(model.njnt) if name in model.joint(j).name]
        assert np.allclose(part.way[:-1], data.xanchor[joints], atol=1e-9)


def test_inspect_names_what_is_refused_and_goes_on(tmp_path):
    path = tmp_path / "winch.xml"
    winch = '<actuator><general name="winch" joint="x" gaintype="user"/></actuator></mujoco>'
    sites = '<site name="low"/><site name="top"/></worldbody>'
    path.write_text(SLIDING_RING.replace("</worldbody>", sites).replace("</mujoco>", winch))
    found = json.loads(invoke("inspect", str(path), "--json").stdout)
    refused = [item for item in found["coverage"] if item["treatment"] == "refused"]
    assert [item["feature"] for item in refused] == ["actuator 'winch': user gain"] * 3
    assert found["robot"] is None
    assert "what drives its joints is refused" in invoke("inspect", str(path)).stdout
    checked = json.loads(invoke("check", str(path), "--states", "2", "--json").stdout)
    absent = [row for row in checked["rows"] if row["error"] is None]
    assert [row["quantity"] for row in absent] == REFUSED
    assert "winch" in absent[0]["note"]
    shown = invoke("check", str(path), "--states", "1", "--frames", "1").stdout
    assert "1 of 2 sites compared; --frames 2 compares all" in shown
    assert checked["not_compared"] == REFUSED
    assert not checked["passed"]


def test_check_fails_where_a_member_is_not_compared_unless_that_is_allowed(tmp_path):
    path, option = tmp_path / "no_medium.xml", '<option density="-1" viscosity="1"/>'
    path.write_text(SLIDING_RING.replace("<worldbody>", f"{option}<worldbody>"))
    result = invoke("check", str(path), "--states", "2")
    assert result.exit_code == 1
    assert "not passed: not compared: passive_force" in result.stdout
    result = invoke("check", str(path), "--states", "2", "--allow-missing", "passive_force")
    assert result.exit_code == 0
    assert "not compared, as allowed: passive_force" in result.stdout
    result = invoke("check", str(path), "--states", "2", "--allow-missing", "fluid")
    assert result.exit_code == 2
    assert "unknown quantity 'fluid'" in result.stderr


@pytest.mark.parametrize("command", ["inspect", "check"])
def test_names_of_a_model_are_printed_as_they_are(tmp_path, command):
    path = tmp_path / "odd.xml"
    path.write_text(SLIDING_RING.replace('name="push"', 'name="[/bold] [red]"'))
    result = invoke(command, str(path), *(["--states", "1"] if command == "check" else []))
    assert result.exit_code == 0
    if command == "inspect":
        assert "[/bold] [red]" in result.stdout


def test_check_agrees_with_mujoco_and_says_so(ring):
    result = invoke("check", ring, "--states", "5", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert found["passed"]
    assert {"mass_matrix", "bias_force", "constraint_bias"} <= {
        r["quantity"] for r in found["rows"]
    }


def test_check_fails_above_its_tolerance(ring):
    result = invoke("check", ring, "--states", "2", "--tolerance", "1e-30")
    assert result.exit_code == 1
    assert "DIFFERS" in result.stdout


def test_frames_that_agree_share_a_row_and_those_that_differ_do_not(ring):
    agreed = invoke("check", ring, "--states", "2").stdout
    assert "body: pose, worst" in agreed
    assert "body 'rod':" not in agreed
    differing = invoke("check", ring, "--states", "2", "--tolerance", "1e-30").stdout
    assert "body 'rod':" in differing


@pytest.mark.parametrize("command", ["inspect", "check"])
def test_an_unknown_model_gets_one_line_with_the_names_that_exist(command):
    result = invoke(command, "five_wheeler")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "five_wheeler" in result.stderr
    assert "four_bar" in result.stderr


def test_unreadable_xml_keeps_mujocos_message(tmp_path):
    path = tmp_path / "broken.xml"
    path.write_text("<mujoco><worldbody><body></mujoco>")
    result = invoke("inspect", str(path))
    assert result.exit_code == 2
    assert "XML" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_model_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert invoke("inspect", "slider_crank.xml").exit_code == 0
    assert not list(tmp_path.iterdir())


def test_every_command_has_help_and_every_one_has_json():
    listed = invoke("--help").stdout
    for name in ("demo", "inspect", "check", "export", "validate", "campaign"):
        assert name in listed
        result = invoke(name, "--help")
        assert result.exit_code == 0
        assert "--json" in result.stdout


def test_the_installed_command_needs_no_terminal_and_no_colour():
    done = subprocess.run(
        [sys.executable, "-c", "from mbcasadi.cli import main; main()", "inspect", "five_bar"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TERM": "dumb"},
    )
    assert done.returncode == 0
    assert "five_bar" in done.stdout
    assert "\x1b" not in done.stdout


def test_without_the_extra_one_line_says_how_to_get_it(monkeypatch, capsys):
    import importlib.util

    from mbcasadi import cli

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "rich" else found(name)
    )
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        'mbcasadi: the command line needs rich; install with: pip install "mbcasadi[tools]"\n'
    )


def test_a_model_of_the_package_can_be_named_without_its_folder():
    from mbcasadi.cli.options import find_model

    assert find_model("four_bar") == models.path("four_bar")
