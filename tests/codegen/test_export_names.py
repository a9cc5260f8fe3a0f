"""No name of an export or of a signal is one of the generated C, of a language or of a library."""

import re
import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest
from codegen_problems import least_distance_controller, saturated_controller
from test_single_precision import computed_torque, phased, standing

from mbcasadi import codegen
from mbcasadi.codegen import InputLimits, Supervision
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.names import (
    BEGINNINGS,
    FAMILIES,
    FUNCTIONS,
    HEADERS,
    KEYWORDS,
    MACROS,
    require_export_name,
)
from mbcasadi.errors import ExportError

NEUTRAL = "xyzzy"
STRICT = ("-std=gnu99", "-Wall", "-Wextra", "-Wshadow", "-Werror")
ELSEWHERE = re.compile(r"__\w+|_[A-Z]\w*|\w*(MAX|MIN|MAX__)|FLT_EVAL_METHOD")
"""Macros of compilers and of C's own headers."""
STANDARD = ("complex", "ctype", "errno", "math", "setjmp", "signal", "stdio", "stdlib", "time")
POSIX = ("fcntl", "poll", "pthread", "semaphore", "sys/mman", "sys/stat", "sys/wait", "unistd")
USERS = "".join(f"#include <{h}.h>\n" for h in STANDARD + POSIX)
REFUSED = ("loops", "limits", "math", "stddef", "stdio", "string", "NULL", "unix", "linux", "Math")
REFUSED += ("sem", "mj", "fmi3", "casadi")


def identifiers(text: str) -> set[str]:
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(\\.|[^"\\])*"', " ", text, flags=re.DOTALL)
    return set(re.findall(r"[A-Za-z_]\w*", text))


def is_accepted(name: str) -> bool:
    try:
        return require_export_name(name) == name
    except ExportError:
        return False


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Return the identifiers of the exporter, and what follows the user's name in the others."""
    folder, found = tmp_path_factory.mktemp("names"), set()
    builders = (computed_torque, phased, lambda: standing(cone="quadratic"))
    for k, build in enumerate(builders):
        controller, _ = build()
        data = getattr(controller, "controller", controller)
        limits = {data.inputs[0].name: InputLimits(jump=1.0)}
        given = {"supervision": Supervision(inputs=limits), "mujoco_plugin": k == 0}
        project = codegen.export_c(controller, folder / str(k), name=NEUTRAL, **given)
        for file in (*project.folder.glob("*.c"), *project.folder.glob("*.h")):
            found |= identifiers(file.read_text(encoding="utf-8"))
    users = {word for word in found if word.lower().startswith(f"{NEUTRAL}_")}
    return found - users, {word[len(NEUTRAL) :] for word in users}


def test_words_of_languages_and_libraries_are_refused_by_name():
    for name in REFUSED:
        with pytest.raises(ExportError, match=rf"'{name}' cannot name a C function.*pass another"):
            require_export_name(name)
    all_words = KEYWORDS | HEADERS | MACROS | FUNCTIONS | BEGINNINGS
    assert [name for name in all_words if is_accepted(name)] == []


def test_macros_of_the_compilers_headers_are_refused_or_no_name_of_ours(words, tmp_path):
    """What a user's `#include` defines before the header of the export."""
    source = tmp_path / "all.c"
    source.write_text(USERS)
    command = [*find_compiler(), "-D_GNU_SOURCE", "-dM", "-E", source]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    defined = re.findall(r"^#define ([A-Za-z]\w*)(\(?)[ ]?(.*)$", text, re.MULTILINE)
    macros = {name for name, _, _ in defined}
    objects = {name for name, bracket, value in defined if not bracket and name != value}
    lower = {name for name in objects if len(name.split("_")) == 1 and not re.search(r"\d", name)}
    assert {"NULL", "unix", "linux", "errno"} <= lower
    assert [name for name in lower if is_accepted(name)] == []
    pairs = [(macro, end) for macro in macros for end in words[1] if macro.endswith(end)]
    assert ("X_OK", "_OK") in pairs
    accepted = [macro for macro, end in pairs if is_accepted(macro.removesuffix(end).lower())]
    assert accepted == ["F_OK"]  # which the header leaves to unistd.h


def test_no_name_that_is_accepted_makes_an_identifier_of_the_exporter(words):
    """The sweep: each identifier of the C, and each beginning of one, as the name of an export."""
    own, ends = words
    assert "ldp_solve" in own
    assert "_step" in ends
    accepted = 0
    for word in own:
        pieces = word.strip("_").split("_")
        for k in range(1, len(pieces) + 1):
            for name in {"_".join(pieces[:k]), "_".join(pieces[:k]).lower()}:
                if not is_accepted(name):
                    continue
                accepted += 1
                made = {f"{name}{end}" for end in ends} | {f"{name.upper()}{end}" for end in ends}
                assert not made & own, name
    assert accepted > 100


def test_macros_of_the_exporter_are_no_sizes_or_indices_of_signals(words):
    """A name, a signal and a component make a macro of three words."""
    long = [word for word in words[0] if word == word.upper() and word.strip("_").count("_") >= 2]
    assert "LDP_ZERO_ROW" in long
    assert [
        word for word in long if not FAMILIES.match(word) and not ELSEWHERE.fullmatch(word)
    ] == []


@pytest.mark.parametrize("name", ["lanes", "active", "is", "keep", "memory_fits", "tick"])
def test_names_of_the_exporters_own_variables_build_and_run(name, tmp_path):
    controller = least_distance_controller(2, 3) if name == "active" else saturated_controller()
    controller_limits = {controller.inputs[0].name: InputLimits(jump=1.0)}
    supervision = None if name == "active" else Supervision(inputs=controller_limits)
    project = codegen.export_c(controller, tmp_path / name, name=name, supervision=supervision)
    files = [file.name for file in project.folder.glob("*.c") if "external" not in file.name]
    command = [*find_compiler(), *STRICT, "-I.", *files, "-lm", "-o", "example"]
    subprocess.run(command, cwd=project.folder, check=True)
    subprocess.run(["./example"], cwd=project.folder, check=True, capture_output=True)


def test_a_program_that_includes_posix_first_takes_an_export_called_f(tmp_path):
    project = codegen.export_c(saturated_controller(), tmp_path / "f", name="f")
    source = project.folder / "use.c"
    source.write_text(USERS + '#include "f.h"\nint main(void) { return F_OK; }\n')
    command = [*find_compiler(), *STRICT, "-D_GNU_SOURCE", "use.c", "f.c", "-lm", "-o", "use"]
    subprocess.run(command, cwd=project.folder, check=True)


HARD = (
    "NULL", "LANES", "linux", "memory", "memory_", "in_", "TICKS", "EOF", "x", "X", "a__b", "a_b",
)  # fmt: skip


def test_signals_and_components_of_any_name_build_and_run(tmp_path):
    """In C parameters and macros, in C++ members and indices."""
    inputs = [ca.SX.sym(f"s{k}") for k in range(len(HARD))]
    outputs = ["Y", "FAR", "BAD"]
    terms = [k * x for k, x in enumerate(inputs)]
    function = ca.Function("f", inputs, [sum(terms), *inputs[:2]], [*HARD], outputs)
    project = codegen.export_c(function, tmp_path / "c", name="hard")
    values = {name: np.array([float(k)]) for k, name in enumerate(HARD)}
    found = project.step(project.memory(), values)
    assert found["Y"][0] == sum(k * k for k in range(len(HARD)))
    source = '#include "hard.h"\nint s[HARD_X_SIZE + HARD_X_SIZE_2 + HARD_BAD_SIZE];\n'
    (tmp_path / "use.c").write_text("#define _GNU_SOURCE\n" + USERS + source)
    command = [*find_compiler(), *STRICT, "-fsyntax-only", f"-I{project.folder}"]
    subprocess.run([*command, tmp_path / "use.c"], check=True)
    if shutil.which("g++"):
        (tmp_path / "use.cpp").write_text(USERS + '#include "hard.hpp"\n')
        command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{project.folder}"]
        subprocess.run([*command, "-fsyntax-only", tmp_path / "use.cpp"], check=True)
