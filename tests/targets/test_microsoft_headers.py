"""The C is strict C99 for Microsoft's target: clang compiles it against stub headers."""

import pytest
from codegen_problems import least_distance_controller
from programs import MAKERS, require, run

from mbcasadi import codegen
from mbcasadi.codegen.text import template

STRICT = ("--target=x86_64-pc-windows-msvc", "-std=c99", "-pedantic-errors", "-Wall", "-Wextra")
STRICT += ("-Werror", "-Wno-unused-parameter", "-ffreestanding", "-O1")


def compile_for_microsoft(project, folder):
    clang = require("clang", "clang")
    for header in ("math", "string"):
        (folder / f"{header}.h").write_text(template(f"targets/web_{header}.h.in", {}))
    source = project.folder / f"{project.name}.c"
    run(clang, *STRICT, "-isystem", folder, "-c", source, "-o", folder / "law.obj")
    assert (folder / "law.obj").read_bytes()[:2] == b"\x64\x86"  # COFF, x86-64


@pytest.mark.parametrize("name", MAKERS)
def test_each_law_compiles(name, recorded, tmp_path):
    compile_for_microsoft(recorded(name).project, tmp_path)


def test_a_least_distance_problem_compiles(tmp_path):
    project = codegen.export_c(least_distance_controller(4, 6), tmp_path / "out")
    compile_for_microsoft(project, tmp_path)
