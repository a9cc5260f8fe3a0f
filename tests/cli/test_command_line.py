"""What all commands share: version, Ctrl-C, quiet."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from mbcasadi.cli import model_commands
from mbcasadi.cli.app import app

RUN = CliRunner()


def test_python_m_prints_the_version():
    command = [sys.executable, "-m", "mbcasadi", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"mbcasadi {version('mbcasadi')}\n"


def test_the_shells_can_complete_commands():
    result = RUN.invoke(app, ["--show-completion", "bash"])
    assert result.exit_code == 0
    assert "complete" in result.stdout


def test_ctrl_c_ends_a_command_with_one_line_and_status_130(monkeypatch):
    def interrupted(model):
        raise KeyboardInterrupt

    monkeypatch.setattr(model_commands, "find_model", interrupted)
    result = RUN.invoke(app, ["check", "four_bar"])
    assert result.exit_code == 130
    assert result.stderr == "mbcasadi: interrupted\n"


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_leaves_stderr_empty(quiet):
    options = ["--quiet"] if quiet else []
    result = RUN.invoke(app, ["check", "four_bar", "--states", "1", *options])
    assert result.exit_code == 0
    assert (result.stderr == "") == quiet
