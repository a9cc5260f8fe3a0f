"""Static checkers have no finding in the generated C."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mbcasadi import codegen

sys.path.append(str(Path(__file__).parents[1] / "codegen"))
from test_single_precision import computed_torque, phased

COMMANDS = {
    "cppcheck": ("--enable=warning,style,performance,portability", "--std=c99", "--quiet",
                 "--suppress=missingIncludeSystem", "--error-exitcode=1"),
    "clang": ("--analyze", "-std=c99", "-Werror", "-Xclang", "-analyzer-werror", "-o", "-"),
}  # fmt: skip


@pytest.mark.parametrize("tool", COMMANDS)
@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("build", [computed_torque, phased])
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
