"""Names from a model reach neither C nor shell nor HTML nor paths unescaped."""

import json
import re
import shutil
import subprocess
import zipfile
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.codegen import InputLimits, Supervision
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.control.laws import computed_torque

HOSTILE = (
    "*/ int x; /*", '"); system("touch owned', "a\nb\\",
    "??/ ${HOME} $(touch owned) `touch owned`", "</script><script>alert(1)</script>",
    "../../owned", "%s%n | a | b |", "größe \u202e [x](javascript:alert(1))",
)  # fmt: skip
BODY = (
    '<body name={name}><joint name={name} axis="0 1 0" damping="1"/>'
    '<geom size="0.1" pos="0 0 0.3"/>{inner}</body>'
)


def model_of(names: tuple[str, ...]) -> str:
    inner = ""
    for name in reversed(names):
        inner = BODY.format(name=quoteattr(name, {"\n": "&#10;"}), inner=inner)
    motors = "".join(
        f"<motor name={quoteattr(name, {chr(10): '&#10;'})} "
        f"joint={quoteattr(name, {chr(10): '&#10;'})}/>"
        for name in names
    )
    model = quoteattr(names[0])
    return (
        f"<mujoco model={model}><worldbody>{inner}</worldbody>"
        f"<actuator>{motors}</actuator></mujoco>"
    )


@pytest.fixture(scope="module")
def law():
    return computed_torque(mb.read_mjcf(model_of(HOSTILE)), mb.control.PostureTask())


def test_the_export_compiles_runs_and_keeps_its_tables(law, tmp_path):
    project = mb.export_c(law, tmp_path / "out")
    command = [*find_compiler(), "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror"]
    command += ["-Wno-unused-parameter", "-trigraphs", "-Wno-trigraphs"]
    files = ["main.c", f"{project.name}.c", "-lm", "-o", "example"]
    subprocess.run([*command, *files], cwd=project.folder, check=True)
    subprocess.run(["./example"], cwd=project.folder, check=True, capture_output=True)
    assert not list(tmp_path.rglob("owned*"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    manifest = json.loads((project.folder / "manifest.json").read_text(encoding="utf-8"))
    names = {s["name"]: s["components"] for s in manifest["inputs"]}
    assert names["q"] == list(HOSTILE)
    readme = (project.folder / "README.md").read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if line.startswith(("| in |", "| out |"))]
    assert len(rows) == len(manifest["inputs"]) + len(manifest["outputs"])
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)
    assert "<script>" not in re.sub(r"\\<", "", readme)
    assert not re.search(r"(?<!\\)\]\(javascript", readme)
    header = (project.folder / f"{project.name}.h").read_text(encoding="utf-8")
    assert header.isascii() or not re.search(r"^[^/*]*[^\x00-\x7f]", header, re.MULTILINE)


def test_the_report_shows_them_as_text(law, tmp_path):
    report = mb.validate(law, model_of(HOSTILE), 0.05, q0=np.zeros(len(HOSTILE)))
    page = report.save(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "alert(1)" in page
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html"]


@pytest.mark.long
def test_other_callers_find_them(law, tmp_path):
    """The plugin looks joints up by these names; the unit's description and the log list them."""
    start = {"q": np.zeros(len(HOSTILE)), "ref": law.reference_at(np.zeros(len(HOSTILE)))}
    project = mb.export_c(
        law, tmp_path / "out", name="hostile", example=start, mujoco_plugin=True, fmu=True,
        supervision=Supervision(inputs={"q": InputLimits(upper={HOSTILE[3]: 0.5})}),
    )  # fmt: skip
    mujoco.mj_loadPluginLibrary(str(project.build_mujoco_plugin(mujoco.__path__[0]).path))
    snippet = (project.folder / "hostile_mujoco.xml").read_text(encoding="utf-8")
    text = model_of(HOSTILE).replace("<worldbody>", '<include file="p.xml"/><worldbody>', 1)
    text = text.replace(
        "<worldbody>", f'<option timestep="{project.manifest["period"]}"/><worldbody>', 1
    )
    model = mujoco.MjModel.from_xml_string(text, {"p.xml": snippet.encode()})
    data = mujoco.MjData(model)
    data.qpos[:] = 0.1
    mujoco.mj_step(model, data)
    expected = project.step(
        project.memory(), {"q": np.full(len(HOSTILE), 0.1), "ref": start["ref"]}
    )
    np.testing.assert_array_equal(data.ctrl, expected["u"])
    with zipfile.ZipFile(project.folder / "hostile.fmu") as archive:
        description = ElementTree.fromstring(archive.read("modelDescription.xml"))
    labels = [node.get("name") for node in description.iter("Float64")]
    assert len(set(labels)) == len(labels)
    assert sum("alert(1)" in label for label in labels) >= 4  # in q, v, ref and u
    running = project.supervised(log_ticks=2)
    running.step({"q": np.eye(len(HOSTILE))[3], "ref": start["ref"]})
    assert running.fault == f"q[3] {HOSTILE[3]}"
    assert running.log().faults == (running.fault,)
    if shutil.which("g++"):
        source = tmp_path / "use.cpp"
        source.write_text(
            '#include "hostile.hpp"\n#include "hostile_supervised.h"\nint main() {}\n'
        )
        command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-trigraphs"]
        subprocess.run([*command, f"-I{project.folder}", "-fsyntax-only", source], check=True)
    assert not list(tmp_path.rglob("owned*"))
