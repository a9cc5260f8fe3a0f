"""An export compiles for Windows with the flags stated for it, and its programs run under Wine.

Needs Debian's gcc-mingw-w64-x86-64 and wine64; `.github/workflows/tests.yml` installs them.
"""

import os
import shutil
import subprocess

import pytest
from codegen_problems import saturated_controller
from programs import require

from mbcasadi import codegen, platforms
from mbcasadi.codegen.timing import timing_c

MINGW = shutil.which("x86_64-w64-mingw32-gcc")
WINE = shutil.which("wine64", path=os.environ["PATH"] + ":/usr/lib/wine")
ALIGNED_MOVE = """typedef double v __attribute__((vector_size(32)));
int main(void) { v a = {1, 2, 3, 4}; __asm__("vmovapd %1, %0" : "=m"(a) : "x"(a)); return 0; }
"""


@pytest.fixture(autouse=True, scope="module")
def mingw():
    require("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64")


def compiled(target, *words, flags=("-std=c99", "-O1")):
    """Compile as `CProject` does on Windows; returns the target."""
    command = [MINGW, *flags, "-Werror", *map(str, words), *platforms.WINDOWS.mathematics]
    done = subprocess.run([*command, "-o", str(target)], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return target


def run(*command):
    """Run a program under Wine; returns its exit status and output."""
    environment = {**os.environ, "WINEDEBUG": "-all"}
    done = subprocess.run(
        [WINE, *map(str, command)], capture_output=True, encoding="utf-8", env=environment
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("with spaces") / "out"
    return codegen.export_c(saturated_controller(), folder)


@pytest.fixture(scope="module")
def library(project):
    path = project.folder / platforms.library_name(project.name, "win32")
    words = (f"-I{project.folder}", project.source, project.folder / f"{project.name}_external.c")
    return compiled(path, *platforms.WINDOWS.shared, *words)


def test_the_library_has_all_symbols_of_header_and_casadi_and_needs_no_other(project, library):
    listing = subprocess.run(
        ["x86_64-w64-mingw32-objdump", "-p", str(library)], capture_output=True, text=True
    ).stdout
    words = set(listing.split())
    needed = (project.name, *(f"{project.name}_{s}" for s in ("init", "step", "n_in", "work")))
    assert words.issuperset(needed)
    assert "DLL Name: libgcc" not in listing
    assert "DLL Name: libwinpthread" not in listing


def test_a_program_linked_with_the_library_prints_what_that_of_this_system_does(project, library):
    require("wine64", "wine64", "/usr/lib/wine")
    folder = project.folder
    example = folder / platforms.program_name("example", "win32")
    links = platforms.search_flags(folder, "win32")
    compiled(example, f"-I{folder}", folder / "main.c", library, *links)
    assert run(example) == (0, project.run_example())


def test_the_program_that_times_ticks_is_linked_with_the_library(project, library):
    source = project.folder / "timing.c"
    source.write_text(timing_c(project.manifest, chained=True), encoding="utf-8")
    compiled(source.with_suffix(".exe"), f"-I{project.folder}", source, library)


@pytest.mark.parametrize("native", [True, False])
def test_vectors_are_moved_as_windows_aligns_its_stack(native, tmp_path):
    (tmp_path / "v.c").write_text(ALIGNED_MOVE, encoding="utf-8")
    flags = ("-O1", "-mavx", *(platforms.WINDOWS.native if native else ()))
    target = compiled(tmp_path / "v.exe", tmp_path / "v.c", flags=flags)
    code = subprocess.run(
        ["x86_64-w64-mingw32-objdump", "-d", str(target)], capture_output=True, text=True
    ).stdout
    main = code[code.index("<main>:") :].split("\n\n")[0]
    assert ("vmovapd" in main) != native
