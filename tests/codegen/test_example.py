"""The folder builds and runs as its manual says."""

import dataclasses
import hashlib
import json
import re
import shlex
import shutil
import subprocess

import numpy as np
import pytest
from codegen_problems import least_distance_controller, nested_law, saturated_controller
from support.pages import equal_but_for_rounding

import mbcasadi as mb
import mbcasadi.codegen as codegen
from mbcasadi.codegen.calls import new_memory
from mbcasadi.errors import ExportError

EQUAL = "1000 ticks, {output} equals the record; the last tick returned 0\n"


def staged():
    return least_distance_controller(3, 4)


def export(make, folder):
    example = {"q": [0.1, -9]} if make is saturated_controller else None
    return codegen.export_c(make(), folder, example=example)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.parametrize("make", [staged, saturated_controller])
@pytest.mark.every(2)
def test_cmake_builds_the_library_and_the_example(make, tmp_path):
    project = export(make, tmp_path / "out")
    for command in ("cmake -S . -B build", "cmake --build build"):
        process = subprocess.run(
            command.split(), cwd=project.folder, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process.stderr
    process = subprocess.run(
        [f"build/{project.name}_example"], cwd=project.folder, capture_output=True, text=True
    )
    assert process.returncode == 0
    # cmake's flags are not the manifest's
    assert equal_but_for_rounding(process.stdout, project.run_example()), process.stdout


@pytest.mark.parametrize("make", [saturated_controller, nested_law, staged])
def test_the_manuals_compiler_line_works(make, tmp_path):
    project = export(make, tmp_path / "out")
    line = re.search(r"^cc .*$", (project.folder / "README.md").read_text(), re.MULTILINE)
    assert line
    process = subprocess.run(
        [*shlex.split(line[0]), "-Werror"], cwd=project.folder, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    process = subprocess.run(["./example"], cwd=project.folder, capture_output=True, text=True)
    assert process.returncode == 0
    outputs = [signal["name"] for signal in project.manifest["outputs"]]
    assert process.stdout == EQUAL.format(output="u" if "u" in outputs else outputs[0])


def test_the_example_runs_on_the_given_state_and_finds_a_wrong_control(tmp_path):
    project = export(saturated_controller, tmp_path / "out")
    assert project.run_example() == EQUAL.format(output="u")
    wrong = export(saturated_controller, tmp_path / "wrong")
    main = wrong.folder / "main.c"
    first = -20 * 0.1 - 3 * (-8 / 512)  # the example's q, the wave of v
    assert f"{first}," in main.read_text()
    main.write_text(main.read_text().replace(f"{first},", f"{first - 1e-5},", 1))
    with pytest.raises(ExportError, match=r"tick 0: u\[0\] = -1.953125, expected -1.953135"):
        wrong.run_example()


def four_bar():
    return mb.read_mjcf(mb.models.path("four_bar"))


def problem():
    """Return inverse dynamics of a four-bar, which is a quadratic program."""
    return mb.control.InverseDynamicsQP(four_bar(), [mb.control.PostureTask()])


def explicit_law():
    return mb.control.laws.computed_torque(four_bar(), mb.control.PostureTask())


def linear_mpc():
    cart = mb.read_mjcf(mb.models.path("cart_pole"))
    linear = mb.linearize(cart, mb.equilibrium(cart))
    options = mb.mpc.LinearOptions(10, [1.0] * 2 * cart.nv, 0.01, period=0.02, delay=1)
    return mb.mpc.linear_mpc(linear, options)


def two_phases():
    cart = mb.read_mjcf(mb.models.path("cart_pole"))
    cost = mb.mpc.Cost(Q=[1.0] * 2 * cart.nv, R=[0.1])
    return mb.mpc.real_time_iteration(mb.mpc.optimal_control_problem(cart, 5, 0.02, [cost]))


@pytest.mark.parametrize(
    ("make", "unit"),
    [(problem, "N m"), (two_phases, "N"), (linear_mpc, "N"), (explicit_law, "N m")],
)
@pytest.mark.every(2)
def test_every_kind_of_controller_repeats_its_record(make, unit, tmp_path):
    project = codegen.export_c(make(), tmp_path / "c")
    project.manifest["flags"] = ["-O0"]  # the compiler's time would be most of the test's
    assert project.run_example() == EQUAL.format(output="u")
    assert project.manifest["outputs"][0]["units"][0] == unit


def test_the_manifest_describes_the_files(tmp_path):
    controller = least_distance_controller(3, 4)
    project = codegen.export_c(controller, tmp_path / "out", solver="daqp")
    manifest = json.loads((project.folder / "manifest.json").read_text())
    files = {p.relative_to(project.folder).as_posix() for p in project.folder.rglob("*.*")}
    files.add("daqp/LICENSE")
    assert set(manifest["sha256"]) == files - {"manifest.json"}
    for name, digest in manifest["sha256"].items():
        assert hashlib.sha256((project.folder / name).read_bytes()).hexdigest() == digest
    assert manifest["solver"]["unknowns"] == 3
    assert manifest["solver"]["rows"] == 4
    assert manifest["u_min"] == [None, None, None]
    assert set(manifest["operations"]) == {"build", "finish"}
    assert set(manifest["versions"]) == {"mbcasadi", "casadi", "daqp"}
    assert codegen.open_project(project.folder) == project


def test_an_export_without_the_solver_names_where_it_is_expected(tmp_path):
    controller = least_distance_controller(2, 2)
    project = codegen.export_c(controller, tmp_path / "out", solver="daqp", daqp="system")
    assert not (project.folder / "daqp").exists()
    assert project.manifest["solver"]["origin"] == "system"
    shipped = codegen.export_c(controller, tmp_path / "shipped", solver="daqp").folder / "daqp"
    law = project.load(flags=["-O1", f"-I{shipped}/include", f"-L{shipped}"])
    assert float(law(np.eye(2), 1, 2, 0)[2]) == 0


def test_the_solver_of_the_default_needs_no_library(tmp_path):
    project = codegen.export_c(staged(), tmp_path / "out")
    assert project.manifest["solver"]["name"] == "mbcasadi"
    assert set(project.manifest["versions"]) == {"mbcasadi", "casadi"}
    for path in project.folder.iterdir():
        assert "daqp" not in path.name.lower()
        assert path.is_dir() or "daqp" not in path.read_text().lower(), path
    compiler = project.build().command
    assert not any("daqp" in word for word in compiler)


def test_a_folder_that_no_export_wrote_is_no_project(tmp_path):
    with pytest.raises(ExportError, match=r"no readable manifest\.json"):
        codegen.open_project(tmp_path)


def test_a_manifest_of_another_format_and_a_library_of_another_export_are_refused(tmp_path):
    project = export(saturated_controller, tmp_path / "out")
    header = (project.folder / "pd.h").read_text()
    assert f'#define PD_SIGNATURE "{project.manifest["signature"]}"' in header
    other = codegen.export_c(
        dataclasses.replace(saturated_controller(), period=0.003), tmp_path / "b"
    )
    assert other.manifest["signature"] != project.manifest["signature"]
    stronger = dataclasses.replace(saturated_controller(), u_max=np.full(2, 6.0))
    same = codegen.export_c(stronger, tmp_path / "c")
    assert same.manifest["signature"] == project.manifest["signature"]
    with pytest.raises(ExportError, match="library of another export"):
        new_memory(project.manifest, other.build().path)
    path = project.folder / "manifest.json"
    path.write_text(path.read_text().replace('"format": 2', '"format": 1'))
    with pytest.raises(ExportError, match=r"has format 1.*reads format 2: export again"):
        codegen.open_project(project.folder)
