"""What the command line says of a mistake: what was meant, in its own words, before long work."""

import re

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from mbcasadi.cli.app import app

RUN = CliRunner()
PENDULUM = """<mujoco><option timestep="0.002"/><worldbody><body><joint name="hinge" axis="0 1 0"/>
<geom name="bob" type="sphere" size="0.1" pos="0 0 -0.5" mass="2"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""
HOLD = """type = "computed_torque"
period = 0.003
[task]
type = "posture"
[validation]
duration = 0.03
fast = true
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Stand in a folder with a model and a controller."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    (tmp_path / "hold.toml").write_text(HOLD)
    return tmp_path


def stderr_of(*arguments):
    result = RUN.invoke(app, arguments)
    assert result.exit_code == 2, result.output
    return result.stderr


def test_a_misspelt_model_gets_the_one_that_is_meant():
    assert stderr_of("inspect", "quadrupd").endswith("did you mean 'quadruped'?\n")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (('"computed_torque"', '"inverse_dynamic"'), r"toml: line 1: .*'inverse_dynamics_qp'\?"),
        (('"posture"', '"postur"'), r"line 4, task: unknown type .*did you mean 'posture'\?\n$"),
        (('type = "posture"', "kp = 3.0"), r"task: type is missing; expected one of 'com', 'dir"),
        (("[task]", "[[task]]"), r"line 3, task: expected a table, found a list; \[NAME\] begins"),
        (("fast = true", "fast = [\n1,"), r"not TOML: .*\(from line 7 on, up to the end of"),
        (("duration", "durations"), r"line 6, validation: unknown key 'durations'.*'duration'\?"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_named_with_the_line_and_what_was_meant(files, changed, words):
    (files / "hold.toml").write_text(HOLD.replace(*changed))
    message = stderr_of("validate", "pendulum.xml", "-c", "hold.toml", "--quiet")
    assert re.search(words, message, re.DOTALL), message


def test_a_duration_is_refused_and_a_period_explained_before_anything_is_compiled(files):
    arguments = ["validate", "pendulum.xml", "-c", "hold.toml"]
    message = stderr_of(*arguments, "--duration", "0.01")
    assert "no multiple of the period of 0.003 s" in message
    assert "compiling" not in message
    shown = RUN.invoke(app, arguments).stderr
    assert 0 < shown.index("The plant steps by 1.5 ms in place of") < shown.index("compiling")
    (files / "hold.toml").write_text(f"{HOLD}timestep = 0.002\n")
    message = stderr_of(*arguments)
    assert "0.003 s is not a multiple of the plant's time step 0.002 s" in message
    assert "compiling" not in message


def test_a_folder_that_is_not_empty_names_the_option(files):
    (files / "out").mkdir()
    (files / "out" / "notes").touch()
    message = stderr_of("export", "pendulum.xml", "-c", "hold.toml", "--out", "out", "-q")
    assert message.endswith("out is not empty; give another folder, or --overwrite\n")


def test_a_log_is_looked_for_before_anything_is_compiled(files):
    (files / "hold.toml").write_text(HOLD + "[supervision]\nstale_after = 5\n")
    exported = RUN.invoke(app, ["export", "pendulum.xml", "-c", "hold.toml", "--out", "out", "-q"])
    assert exported.exit_code == 0, exported.output
    assert "cannot read ticks.log" in (message := stderr_of("replay", "out", "ticks.log"))
    assert "compiling" not in message


def test_no_help_holds_what_rich_takes_for_markup():
    def texts(command):
        yield command.help or ""
        yield from (getattr(each, "help", None) or "" for each in command.params)
        for each in getattr(command, "commands", {}).values():
            yield from texts(each)

    every = list(texts(get_command(app)))
    assert len(every) > 60
    assert [text for text in every if re.search(r"(?<!\\)\[[a-z/]", text)] == []


@pytest.mark.parametrize("place", ["before", "after"])
def test_verbose_writes_the_details_of_one_command_only(place, files):
    arguments = ["inspect", "pendulum.xml"]
    details = ["-v", *arguments] if place == "before" else [*arguments, "-v"]
    shown = RUN.invoke(app, details).stderr
    assert re.search(r"^ *\d+ ms  mbcasadi.mjcf.read: reading '.*pendulum.xml': ", shown, re.M)
    assert RUN.invoke(app, arguments).stderr == ""
