"""Exports in float for a processor whose unit has single precision only."""

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from mbcasadi import codegen

sys.path.append(str(Path(__file__).parents[1] / "codegen"))
from test_single_precision import computed_torque, horizon, iteration, phased, standing

GCC = "arm-none-eabi-gcc"
CORTEX_M7 = ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard")
WARNINGS = ("-Wall", "-Wextra", "-Wdouble-promotion", "-Wfloat-conversion", "-Werror")
WARNINGS += ("-Wunsuffixed-float-constants",)


@pytest.mark.skipif(shutil.which(GCC) is None, reason=f"{GCC} is not there: gcc-arm-none-eabi")
@pytest.mark.parametrize(
    "build", [computed_torque, standing, partial(standing, cone="quadratic"), horizon, iteration,
              phased]
)  # fmt: skip
def test_nothing_calls_the_routines_of_double(build, tmp_path):
    project = codegen.export_c(build()[0], tmp_path / "c", real="float")
    command = [GCC, "-std=c99", "-O2", *CORTEX_M7, *WARNINGS, f"-I{project.folder}", "-c"]
    built = subprocess.run(
        [*command, project.source, "-o", tmp_path / "law.o"], capture_output=True, check=False
    )
    assert built.returncode == 0, built.stderr.decode()
    symbols = subprocess.run(
        ["arm-none-eabi-nm", "-u", tmp_path / "law.o"], capture_output=True, check=True, text=True
    ).stdout.split()
    assert "sinf" in symbols or "tanhf" in symbols
    assert not [name for name in symbols if name.startswith("__aeabi_d") or "2d" in name]
