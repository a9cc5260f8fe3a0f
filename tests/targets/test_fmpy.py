"""The co-simulation unit in FMPy, which checks it and runs it."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.validation import demo
from mbcasadi.validation.spec import build_experiment, example_inputs, read_spec

fmpy = pytest.importorskip("fmpy", reason="no FMPy: pip install fmpy")
validation = pytest.importorskip("fmpy.validation")

pytestmark = pytest.mark.filterwarnings("ignore")  # of packages that FMPy imports
PERIOD, TICKS = 0.001, 50


def export(name, folder):
    spec = read_spec(Path(demo.__file__).parent / f"{name}.toml")
    experiment = build_experiment(spec, Path(models.path(name)))
    example = example_inputs(experiment)[""]
    return mb.export_c(experiment.all_laws[""], folder, example=example, fmu=True), example


@pytest.mark.parametrize("name", ["four_bar", "quadruped"])
def test_fmpy_finds_no_fault_and_computes_what_the_c_computes(name, tmp_path):
    project, example = export(name, tmp_path / "out")
    unit = str(project.folder / f"{project.name}.fmu")
    assert validation.validate_fmu(unit) == []
    joint = project.manifest["inputs"][0]["components"][-1]
    times = PERIOD * np.arange(TICKS + 1)
    angles = example["q"][-1] + 0.2 * np.sin(20 * times)
    signal = np.array(
        list(zip(times, angles, strict=True)), dtype=[("time", float), (f"q.{joint}", float)]
    )
    result = fmpy.simulate_fmu(
        unit, start_time=0.0, stop_time=TICKS * PERIOD, output_interval=PERIOD, input=signal
    )
    memory, z = project.memory(), np.array(project.manifest["z0"])
    labels = [f"u.{c}" for c in project.manifest["outputs"][0]["components"]]
    assert len(result) == TICKS + 1
    for k in range(TICKS):
        q = np.array(example["q"])
        q[-1] = angles[k]
        outputs = project.step(memory, example | {"q": q, "z": z})
        z = outputs["z_next"]
        assert np.allclose([result[k + 1][n] for n in labels], outputs["u"], rtol=1e-9, atol=1e-9)


def test_fmpy_builds_the_unit_from_its_sources(tmp_path):
    pytest.importorskip("fmpy.build")
    from fmpy.build import build_platform_binary

    project, _ = export("four_bar", tmp_path / "out")
    with zipfile.ZipFile(project.folder / f"{project.name}.fmu") as files:
        files.extractall(tmp_path / "unit", [n for n in files.namelist() if "binaries" not in n])
    build_platform_binary(tmp_path / "unit", configuration="Release")
    result = fmpy.simulate_fmu(str(tmp_path / "unit"), stop_time=0.01, output_interval=PERIOD)
    assert result["status"][-1] == 0
    assert abs(result["u.crank"][-1]) > 0.1
