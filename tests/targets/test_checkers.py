"""Static checkers have no finding in the generated C."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mbcasadi as mb
from mbcasadi import codegen, models

sys.path.append(str(Path(__file__).parents[1] / "codegen"))
from codegen_problems import saturated_controller
from test_single_precision import computed_torque, crank, horizon, phased

COMMANDS = {
    "cppcheck": ("--enable=warning,style,performance,portability", "--std=c99", "--quiet",
                 "--suppress=missingIncludeSystem", "--error-exitcode=1"),
    "clang": ("--analyze", "-std=c99", "-Werror", "-Xclang", "-analyzer-werror", "-o", "-"),
}  # fmt: skip


def springs():
    """Return a law of two masses: cppcheck needs hours for one of a quadruped."""
    system = mb.read_mjcf(models.path("two_mass_spring"))
    return mb.control.InverseDynamicsQP(system, [mb.control.PostureTask()], name="springs"), {}


def by_hand():
    return saturated_controller(), {}


@pytest.mark.parametrize(
    ("tool", "build"),
    [
        *(("cppcheck", build) for build in (springs, phased, by_hand)),
        *(("clang", build) for build in (computed_torque, crank, horizon, phased, by_hand)),
    ],
)
@pytest.mark.parametrize("real", ["double", "float"])
def test_a_checker_finds_nothing(tool, real, build, tmp_path):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not there: Debian's package {tool}")
    supervision = codegen.Supervision(inputs={"q": codegen.InputLimits(jump=0.1)}, stale_after=2)
    project = codegen.export_c(build()[0], tmp_path / "c", real=real, supervision=supervision)
    for source in (project.source, project.folder / f"{project.name}_supervised.c"):
        command = [tool, *COMMANDS[tool], f"-I{project.folder}", source]
        checked = subprocess.run(command, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stdout.decode() + checked.stderr.decode()
        assert b"warning" not in checked.stderr
