"""An export is opened again: elsewhere, after changes, without some of its files."""

import json
import shutil

import numpy as np
import pytest
from plugin_problems import hand_made

import mbcasadi as mb
from mbcasadi.errors import ExportError


@pytest.fixture
def folder(tmp_path):
    return mb.export_c(hand_made("opened"), tmp_path / "out").folder


def test_a_folder_that_was_moved_works(folder, tmp_path, monkeypatch):
    before = mb.open_project(folder)
    expected = before.step(before.memory(), {"q": [0.1]})
    place = tmp_path / "else where"
    shutil.move(folder, place)
    monkeypatch.chdir(tmp_path)
    project = mb.open_project("else where")
    outputs = project.step(project.memory(), {"q": [0.1]})
    assert np.array_equal(outputs["u"], expected["u"])
    assert project.load().name() == "opened"
    assert "returned 0" in project.run_example()


@pytest.mark.parametrize("file", ["opened.c", "opened.h", "opened_external.c"])
def test_a_file_that_was_changed_or_removed_is_named(folder, file):
    text = (folder / file).read_text()
    (folder / file).write_text(text + "/* mine */\n")
    with pytest.raises(ExportError, match=rf"changed since their export \({file}\); export again"):
        mb.open_project(folder)
    assert mb.open_project(folder, verify=False).name == "opened"
    (folder / file).unlink()
    with pytest.raises(ExportError, match=rf"lacks files of its export \({file}\)"):
        mb.open_project(folder)


@pytest.mark.parametrize("file", ["main.c", "CMakeLists.txt", "README.md"])
def test_example_and_build_file_are_the_users(folder, file):
    (folder / file).write_text("mine")
    assert mb.open_project(folder).name == "opened"


def test_a_changed_manifest_is_refused(folder):
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"sha256": content["sha256"] | {"opened.c": "0"}}))
    with pytest.raises(ExportError, match=r"changed since their export \(opened\.c\)"):
        mb.open_project(folder)
    path.write_text(json.dumps({k: v for k, v in content.items() if k != "operations"}))
    with pytest.raises(ExportError, match="lacks operations: it was changed"):
        mb.open_project(folder)
    other = json.loads(json.dumps(content))
    other["inputs"][0]["size"] += 1
    path.write_text(json.dumps(other))
    with pytest.raises(ExportError, match=r"lists signals of the signature \w+, and has"):
        mb.open_project(folder)
    path.write_text(json.dumps(content | {"inputs": [3]}))
    with pytest.raises(ExportError, match=r"has inputs = \[3\], which no export writes"):
        mb.open_project(folder)
    for text in ("[]", "{", '"text"'):
        path.write_text(text)
        with pytest.raises(ExportError, match=r"manifest\.json"):
            mb.open_project(folder)


def test_a_manifest_of_an_earlier_version_is_read(folder):
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    del content["mujoco"]
    path.write_text(json.dumps(content))
    assert mb.open_project(folder).name == "opened"


@pytest.mark.parametrize(
    ("key", "value"),
    [("memory_bytes", -8), ("memory_bytes", "many"), ("memory_bytes", True), ("z0", "none"),
     ("name", "../law"), ("outputs", {"u": 1}), ("flags", "-O2"), ("sha256", {"main.c": 3})],
)  # fmt: skip
def test_values_that_no_export_writes_are_refused(key, value, tmp_path):
    folder = mb.export_c(hand_made("opened"), tmp_path / "out").folder
    manifest = folder / "manifest.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps(content | {key: value}), encoding="utf-8")
    for verify in (True, False):
        with pytest.raises(ExportError, match=rf"has {key} = .*which no export writes"):
            mb.codegen.open_project(folder, verify=verify)
