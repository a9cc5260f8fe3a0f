"""The command `example`: programs that run alone, wherever they are copied to."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mbcasadi
from mbcasadi.cli import examples as example_files
from mbcasadi.cli.app import app
from mbcasadi.errors import ProblemError, UnknownNameError

RUN = CliRunner()
ROOT = Path(mbcasadi.__file__).parents[1]
EXAMPLES = example_files.all_examples()
LONGEST, WIDEST = 80, 78  # lines; characters of what the list shows on one line
INSTALLED = {"casadi", "mbcasadi", "mujoco", "numpy", "scipy"}  # without any extra
QUICKEST = "servo_constraint"  # imports a module of `twins`, which imports another one


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.path.stem)
def test_an_example_is_short_and_imports_what_a_copy_brings(example):
    text = example.path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert text.startswith(f'"""{example.summary}\n')
    assert example.summary.endswith(".")
    assert len(example.summary) <= WIDEST
    assert "You will see" in text.partition('"""\n\n')[0]
    needed = example_files.needed_files(example.path)
    brought = {file.relative_to(example_files.FOLDER).parts[0] for file in needed}
    for file in needed:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{file.parent.name}" if node.level else node.module]
            for name in names:
                top = name.partition(".")[0]
                assert top in sys.stdlib_module_names | INSTALLED | brought, f"{file}: {name}"


def test_a_number_a_name_and_the_beginning_of_one_find_an_example():
    for text in ("8", "08", "servo_constraint", "08_servo_constraint.py", "servo_cons"):
        assert example_files.find_example(text).path.name == "08_servo_constraint.py"
    with pytest.raises(UnknownNameError, match="did you mean 'squat'"):
        example_files.find_example("sqat")
    with pytest.raises(
        ProblemError, match="beginning of several examples: servo_constraint, servo_control"
    ):
        example_files.find_example("servo")
    with pytest.raises(UnknownNameError):
        example_files.find_example("99")


def test_the_list_has_a_line_for_each_and_so_has_the_page_of_the_docs():
    result = RUN.invoke(app, ["example", "--json"])
    listed = json.loads(result.stdout)["examples"]
    assert [each["number"] for each in listed] == list(range(1, len(EXAMPLES) + 1))
    table = RUN.invoke(app, ["example"]).stdout
    assert len(table.splitlines()) == 3 + len(EXAMPLES)
    page = (ROOT / "docs" / "results" / "examples.md").read_text(encoding="utf-8")
    for each in listed:
        assert f" {each['name']} " in table
        assert f"| {each['number']} | `{each['name']}` | {each['summary']} |" in page


def test_a_copy_runs_alone_and_nothing_is_overwritten(tmp_path):
    folder = tmp_path / "mine"
    copied = RUN.invoke(app, ["example", QUICKEST, "--copy", str(folder)])
    assert copied.exit_code == 0, copied.output
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*.py")}
    modules = {f"twins/{name}.py" for name in ("__init__", "energies", "two_mass_spring")}
    assert files == {f"08_{QUICKEST}.py", *modules}
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, f"08_{QUICKEST}.py", "gap.svg"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    assert "stabilised: gap off by 5.0 mm, then 0.00 mm" in done.stdout
    assert "<!-- gap too large by, m -->" in (folder / "gap.svg").read_text(encoding="utf-8")
    (folder / f"08_{QUICKEST}.py").unlink()
    again = RUN.invoke(app, ["example", "8", "--copy", str(folder)])
    assert again.exit_code == 2
    assert "exists; give another folder" in again.stderr
    assert not (folder / f"08_{QUICKEST}.py").exists()


def test_the_command_runs_an_example_and_refuses_what_it_does_not_take(monkeypatch, tmp_path):
    for name in example_files.needed_files(example_files.find_example("1").path):
        assert name.name == "01_four_bar_torques.py"
    (tmp_path / "01_short.py").write_text(
        '"""Says it."""\n\n\ndef main(word="ja"):\n    print(word)\n'
    )
    monkeypatch.setattr(example_files, "FOLDER", tmp_path)
    assert RUN.invoke(app, ["example", "short"]).stdout == "ja\n"
    assert RUN.invoke(app, ["example", "1", "oui"]).stdout == "oui\n"
    refused = RUN.invoke(app, ["example", "1", "oui", "si"])
    assert refused.exit_code == 2
    assert "takes: word; got 2" in refused.stderr
    nameless = RUN.invoke(app, ["example", "--copy", str(tmp_path)])
    assert nameless.exit_code == 2
    assert "needs the name of an example" in nameless.stderr
