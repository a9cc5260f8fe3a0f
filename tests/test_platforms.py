"""What depends on the operating system, for each of them on any of them."""

from pathlib import Path

import pytest

from mbcasadi import platforms
from mbcasadi.codegen import compiler
from mbcasadi.errors import CompilerError

SYSTEMS = ("linux", "darwin", "win32")


@pytest.mark.parametrize(
    ("system", "library", "program"),
    [("linux", "liblaw.so", "run"), ("darwin", "liblaw.dylib", "run"),
     ("win32", "liblaw.dll", "run.exe"), ("freebsd14", "liblaw.so", "run")],
)  # fmt: skip
def test_files_have_the_suffixes_of_their_system(system, library, program):
    assert platforms.library_name("law", system) == library
    assert platforms.program_name("run", system) == program


def test_only_unix_has_position_independent_code_and_a_library_of_mathematics():
    for system in SYSTEMS:
        here, unix = platforms.platform_of(system), system != "win32"
        assert here.shared[0] == "-shared"
        assert ("-fPIC" in here.shared) == unix
        assert here.mathematics == (("-lm",) if unix else ())


def test_the_machine_has_the_name_of_its_processor():
    name = platforms.machine_name()
    assert name == name.strip()
    assert len(name) > 2


def test_a_program_finds_the_library_beside_it():
    folder = Path("a folder")
    assert platforms.search_flags(folder, "linux") == ("-Wl,-rpath,a folder",)
    assert platforms.search_flags(folder, "win32") == ()  # it looks in its own
    assert platforms.identity_flags("libx.dylib", "darwin") == (
        "-Wl,-install_name,@rpath/libx.dylib",
    )
    assert platforms.identity_flags("program", "darwin") == ()
    assert platforms.identity_flags("libx.so", "linux") == ()


def test_a_backslash_stands_for_itself_on_windows():
    text = r'"C:\msys64\bin\gcc.exe" -m64'
    assert platforms.split_command(text, "win32") == (r"C:\msys64\bin\gcc.exe", "-m64")
    assert platforms.split_command('"/opt/my gcc/cc" -m64', "linux") == ("/opt/my gcc/cc", "-m64")
    for system in SYSTEMS:
        with pytest.raises(ValueError, match="quotation"):
            platforms.split_command('gcc "-m64', system)


@pytest.fixture
def windows(monkeypatch):
    monkeypatch.setattr(compiler, "platform_of", lambda: platforms.WINDOWS)


def program(folder, name):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


def test_where_only_the_compiler_of_visual_studio_is_found_the_error_says_why(
    windows, tmp_path, monkeypatch
):
    cl = program(tmp_path / "bin", "cl")
    monkeypatch.setenv("PATH", str(cl.parent))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(CompilerError, match=r"tried gcc, clang.*MSYS2.*cl is there.*DAQP"):
        compiler.find_compiler()
    with pytest.raises(CompilerError, match=r"'cl' \(cc=\) takes other flags.*expected GCC"):
        compiler.find_compiler("cl")
    gcc = program(cl.parent, "gcc")
    assert compiler.find_compiler() == ("gcc",)
    assert compiler.find_compiler(str(gcc)) == (str(gcc),)


def test_a_path_with_spaces_is_a_compiler(tmp_path):
    cc = program(tmp_path / "with spaces", "my cc")
    assert compiler.find_compiler(str(cc)) == (str(cc),)


def test_windows_loads_a_copy_so_that_the_library_can_be_replaced(windows, tmp_path):
    library = tmp_path / "libx.dll"
    library.write_bytes(b"one")
    copy = compiler.library_to_load(library)
    assert copy != library
    assert copy.read_bytes() == b"one"
    assert compiler.library_to_load(library) == copy
    library.write_bytes(b"two")
    assert compiler.library_to_load(library).read_bytes() == b"two"
    assert copy.read_bytes() == b"one"


def test_unix_loads_the_library_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(compiler, "platform_of", lambda: platforms.LINUX)
    assert compiler.library_to_load(tmp_path / "libx.so") == tmp_path / "libx.so"
