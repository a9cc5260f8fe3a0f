"""Exports in float for a processor whose unit has single precision only."""

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from programs import Recorded, replay, require, run
from test_web import NODE

import mbcasadi as mb
from mbcasadi import codegen, models
from mbcasadi.codegen.targets.cortex_m7 import run_firmware
from mbcasadi.codegen.targets.replay import write_record
from mbcasadi.control.regulators import lqr

sys.path.append(str(Path(__file__).parents[1] / "codegen"))
from test_single_precision import computed_torque, horizon, phased, standing

from mbcasadi.control.laws import LawOptions

GCC, NO_FMA = "arm-none-eabi-gcc", "-ffp-contract=off"
TICKS = 500
MODELS = {"four_bar": "four_bar", "lqr": "pendulum_on_four_bar"}
LAWS = {
    "four_bar": lambda system: mb.control.InverseDynamicsQP(
        system, [mb.control.PostureTask(("crank",), kp=400.0)], torque_weight=1e-4
    ),
    "lqr": lambda system: lqr(
        mb.linearize(system, mb.equilibrium(system)),
        np.repeat([10.0, 0.1], system.nv),
        1.0,
        options=LawOptions(period=1e-3),
    ),
}
CORTEX_M7 = ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard")
WARNINGS = ("-Wall", "-Wextra", "-Wdouble-promotion", "-Wfloat-conversion", "-Werror")
WARNINGS += ("-Wunsuffixed-float-constants",)


@pytest.mark.skipif(shutil.which(GCC) is None, reason=f"{GCC} is not there: gcc-arm-none-eabi")
@pytest.mark.parametrize(
    "build", [computed_torque, standing, partial(standing, cone="quadratic"), horizon, phased]
)
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


# Of the largest output: libraries differ in the last bits of a sine, of which a law whose
# torques are nearly free makes more.
CLOSE = {"four_bar": 1e-4, "lqr": 1e-5}


@pytest.fixture(scope="module")
def singles(recorded, tmp_path_factory):
    """Return an export in float, its record, and what x86-64 computes from it."""
    made = {}

    def of(name):
        if name not in made:
            folder, double = tmp_path_factory.mktemp(f"single_{name}"), recorded(name)
            system = mb.read_mjcf(models.path(MODELS[name]))
            law = LAWS[name](system)
            project = mb.export_c(law, folder / "c", name=name, real="float")
            rows = {k: v[:TICKS] for k, v in double.inputs.items()}
            single = Recorded(project, rows)
            made[name] = single, replay(single, folder / "x86", ("gcc",), flags=(NO_FMA,))
        return made[name]

    return of


@pytest.mark.parametrize("name", LAWS)
def test_firmware_and_webassembly_in_float_give_the_numbers_of_x86(name, singles, tmp_path):
    for tool, package in {
        GCC: "gcc-arm-none-eabi libnewlib-arm-none-eabi",
        "qemu-system-arm": "qemu-system-arm",
        "clang": "clang",
        "wasm-ld": "lld",
        "node": "nodejs",
    }.items():
        require(tool, package)
    single, expected = singles(name)
    project = single.project
    project.cortex_m7(tmp_path / "m7")
    firmware = run_firmware(project.manifest, tmp_path / "m7", single.inputs)
    project.wasm(tmp_path / "web")
    write_record(project.manifest, tmp_path / "web", single.inputs)
    (tmp_path / "web" / "run.js").write_text(NODE % {"name": name, "ticks": TICKS})
    run("node", "run.js", cwd=tmp_path / "web")
    found = np.fromfile(tmp_path / "web" / "outputs").reshape(expected.outputs.shape)
    for outputs in (firmware.replay.outputs, found):
        gap = np.abs(outputs - expected.outputs) / np.maximum(
            1, np.abs(expected.outputs).max(axis=0)
        )
        print(name, gap.max())
        assert gap.max() < CLOSE[name]
    assert np.abs(expected.outputs[:, 0]).max() > 0.01
