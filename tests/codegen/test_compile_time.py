"""The time that a compilation will take is that of the last one, line by line."""

import pytest
from codegen_problems import saturated_controller

from mbcasadi import codegen
from mbcasadi.codegen.builder import FIRST_RATES, compile_seconds, remember_rate
from mbcasadi.codegen.compiler import find_compiler

COMMAND = ("cc", "-std=c99", "-O3")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE", str(tmp_path))


def test_the_rate_of_the_last_long_compilation_holds():
    assert compile_seconds(1000, COMMAND) == pytest.approx(1000 * FIRST_RATES["-O3"])
    remember_rate(2000, COMMAND, 0.2)  # too short to tell
    assert compile_seconds(1000, COMMAND) == pytest.approx(1000 * FIRST_RATES["-O3"])
    remember_rate(2000, COMMAND, 8.0)
    assert compile_seconds(500, COMMAND) == pytest.approx(2.0)
    assert compile_seconds(500, (*COMMAND[:2], "-O1")) == pytest.approx(500 * FIRST_RATES["-O1"])


def test_the_estimate_is_said_before_and_only_for_the_law_itself(tmp_path):
    said = []
    project = codegen.export_c(saturated_controller(), tmp_path / "out", progress=said.append)
    remember_rate(project.lines, (*find_compiler(), "-O3"), 12.0)
    said.clear()
    project.build()
    assert len(said) == 2
    assert said[0].startswith(f"pd: compiling {project.lines} lines, about 12 s unless")
    assert said[1].startswith(f"pd: compiled {project.lines} lines in ")
    project.time({"q": [0.0, 0.0]}, repeats=1)  # links the library: no word
    assert len(said) == 2
