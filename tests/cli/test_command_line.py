"""What all commands share: version, Ctrl-C, quiet; margins, init, the schema."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from mbcasadi import models
from mbcasadi.cli import check
from mbcasadi.cli.app import app
from mbcasadi.cli.options import parse_direction, parse_numbers, parse_ranges
from mbcasadi.errors import ProblemError
from mbcasadi.validation.spec.activities import ACTIVITIES

RUN = CliRunner()


def test_python_m_prints_the_version():
    command = [sys.executable, "-m", "mbcasadi", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"mbcasadi {version('mbcasadi')}\n"


def test_the_shells_can_complete_commands(monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # else the parent's
    result = RUN.invoke(app, ["--show-completion", "bash"])
    assert result.exit_code == 0
    assert "complete" in result.stdout


def test_ctrl_c_ends_a_command_with_one_line_and_status_130(monkeypatch):
    def interrupted(model):
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "find_model", interrupted)
    result = RUN.invoke(app, ["check", "four_bar"])
    assert result.exit_code == 130
    assert result.stderr == "mbcasadi: interrupted\n"


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_leaves_stderr_empty(quiet):
    options = ["--quiet"] if quiet else []
    result = RUN.invoke(app, ["check", "four_bar", "--states", "1", *options])
    assert result.exit_code == 0
    assert (result.stderr == "") == quiet


PENDULUM = """<mujoco><option timestep="0.002"/><worldbody><body><joint name="hinge" axis="0 1 0"/>
<geom name="bob" type="sphere" size="0.1" pos="0 0 -0.5" mass="2"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""
HOLD = """type = "computed_torque"
period = 0.002
start = { q = [1.0] }
[task]
type = "posture"
kp = 400.0
[validation]
duration = 1.5
settle = 0.5
[validation.criteria]
"tracking.max" = 0.0215
"""


@pytest.mark.long
def test_margin_finds_the_mass_error_that_the_statics_of_a_pendulum_give(tmp_path):
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    (tmp_path / "hold.toml").write_text(HOLD)
    files = [tmp_path / "pendulum.xml", "--controller", tmp_path / "hold.toml"]
    search = ["--over", "mass", "--largest", 0.9, "--steps", 3, "--jobs", 1, "--json"]
    result = RUN.invoke(app, [str(a) for a in ("margin", *files, *search)])
    assert result.exit_code == 1, result.output
    found = json.loads(result.stdout)
    inertia, arm = 2 * (0.5**2 + 0.4 * 0.1**2), 2 * 9.81 * 0.5 * np.sin(1.0 - 0.0215)
    assert found["passes"] < 0.0215 * inertia * 400 / arm < found["fails"]  # I kp e = error * arm
    assert found["fails"] - found["passes"] <= 0.009
    search[-1] = "--fast"
    fast = RUN.invoke(app, [str(a) for a in ("margin", *files, *search)])
    assert f"mass = {found['passes']:.4g} and {found['fails']:.4g}" in fast.stdout
    assert "Fast: all cases have run the law's Python Function" in fast.stdout


def test_the_schema_knows_every_type_of_controller():
    result = RUN.invoke(app, ["schema"])
    schema = json.loads(result.stdout)
    assert {"lqr", "linear_mpc", "own", "inverse_dynamics_qp"} <= {
        *schema["discriminator"]["mapping"]
    }


@pytest.mark.parametrize("model", [pytest.param("quadruped", marks=pytest.mark.long), "four_bar"])
def test_the_file_that_init_writes_passes_at_once(model, tmp_path):
    file = tmp_path / "spec.toml"
    written = RUN.invoke(app, ["init", model, "-o", str(file)])
    assert written.exit_code == 0, written.output
    assert file.read_text().startswith("#:schema ./spec.schema.json\n")
    run = ["validate", model, "--controller", str(file), "--fast", "--quiet", "--duration", "0.3"]
    result = RUN.invoke(app, run)
    assert result.exit_code == 0, result.output
    again = RUN.invoke(app, ["init", model, "-o", str(file)])
    assert again.exit_code == 2
    assert "exists" in again.stderr


def test_the_help_of_init_names_all_tasks():
    (task,) = (each for each in get_command(app).commands["init"].params if each.name == "task")
    assert {*ACTIVITIES} <= {*re.findall(r"\w+", task.help)}


@pytest.mark.long
def test_init_lifts_a_robot_whose_feet_are_in_the_ground(tmp_path):
    text = models.path("quadruped").read_text()
    numbers = re.search(r'qpos="([^"]+)"', text)[1]
    pose = [float(x) for x in numbers.split()]
    deep = " ".join(f"{x - 0.02 * (k == 2)}" for k, x in enumerate(pose))
    sunk = text.replace(numbers, deep)
    (tmp_path / "sunk.xml").write_text(sunk)
    result = RUN.invoke(app, ["init", str(tmp_path / "sunk.xml"), "-o", str(tmp_path / "s.toml")])
    assert result.exit_code == 0, result.output
    start = tomllib.loads((tmp_path / "s.toml").read_text())["start"]["q"]
    assert pose[2] - 1e-3 < start[2] < pose[2] + 1e-4  # feet start as deep as the weight presses


def test_init_warns_of_a_robot_that_falls(tmp_path):
    ball = "<body><freejoint/><geom name='foot' size='1'/><body><joint name='j'/>"
    file = tmp_path / "ball.xml"
    file.write_text(
        f"<mujoco><worldbody>{ball}<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>"
        "</body></body></worldbody><actuator><motor joint='j'/></actuator></mujoco>"
    )
    result = RUN.invoke(app, ["init", str(file), "-o", str(tmp_path / "s.toml")])
    assert result.exit_code == 0, result.output
    assert "warning: The base floats" in result.stderr
    assert '<geom name="floor" type="plane"' in result.stderr
    assert "warning" not in result.stdout


def test_the_way_ahead_is_an_axis_or_three_numbers(tmp_path):
    assert parse_direction("-y") == (0.0, -1.0, 0.0)
    assert parse_direction("1,1,0") == (1.0, 1.0, 0.0)
    for wrong in ("x", "+w", "1,1"):
        with pytest.raises(ProblemError, match="expected an axis such as"):
            parse_direction(wrong)
    options = ["--task", "stand", "--ahead", "-x", "--speed", "0.2"]
    result = RUN.invoke(app, ["init", "quadruped", "-o", str(tmp_path / "s.toml"), *options])
    assert result.exit_code == 2
    assert "speed = 0.2 with task 'stand'; expected task trot, walk or drive" in result.stderr


def test_numbers_and_ranges_are_read_by_name_and_others_are_refused():
    assert parse_numbers(["mass=0.1", " gain = -2 "]) == {"mass": 0.1, "gain": -2.0}
    assert parse_ranges(["mass=-0.1:0.2", "gain=1:2"]) == {"mass": (-0.1, 0.2), "gain": (1.0, 2.0)}
    for read, wrong in ((parse_numbers, "mass"), (parse_numbers, "=1"), (parse_ranges, "mass=1")):
        with pytest.raises(ProblemError, match=f"'{wrong}': expected NAME="):
            read([wrong])
