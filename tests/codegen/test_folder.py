"""What an export may replace, and what a killed one leaves behind."""

import os
import signal
import subprocess
import sys
import textwrap

import casadi as ca
import pytest

from mbcasadi import codegen
from mbcasadi.codegen import folder as staging
from mbcasadi.errors import CompilerError, ExportError

X = ca.SX.sym("x")
ONE, TWO = ca.Function("f", [X], [X + 1]), ca.Function("f", [X], [X + 2])


@pytest.fixture
def exported(tmp_path):
    """Return the folder of an export, with the products of a build."""
    project = codegen.export_c(ONE, tmp_path / "out")
    build = project.folder / "build"
    build.mkdir()
    named = (
        "libf_0123456789ab.so example_0123456789ab timing_f.c timing_0123456789ab_1 .libf_0.so.77"
    )
    for product in named.split():
        (build / product).write_text("built")
    for product in ("CMakeCache.txt", "CMakeFiles/3.1/a.o", "Makefile", "libf.a", "f_example"):
        (build / product).parent.mkdir(parents=True, exist_ok=True)
        (build / product).write_text("built by CMake")
    return project.folder


def test_an_unchanged_export_is_replaced_with_the_products_of_its_builds(exported):
    codegen.export_c(TWO, exported, overwrite=True)
    assert not (exported / "build").exists()
    assert codegen.export_c(ONE, exported, overwrite=True).source.is_file()


@pytest.mark.parametrize("edited", ["f.c", "main.c", "CMakeLists.txt", "README.md"])
def test_a_file_that_was_edited_is_not_deleted(exported, edited):
    text = (exported / edited).read_text() + "\n my own line\n"
    (exported / edited).write_text(text)
    with pytest.raises(ExportError, match=rf"changed since their export \({edited}\); .*discard_"):
        codegen.export_c(TWO, exported, overwrite=True)
    assert (exported / edited).read_text() == text
    codegen.export_c(TWO, exported, overwrite=True, discard_changes=True)
    assert (exported / edited).read_text() != text


@pytest.mark.parametrize("name", ["notes.txt", "build/results.csv", "daqp/patch.c", "build/lib.so"])
def test_a_file_of_others_is_not_deleted(exported, name):
    (exported / name).parent.mkdir(exist_ok=True)
    (exported / name).write_text("mine")
    with pytest.raises(ExportError, match=rf"no export wrote \({name}\); overwrite would delete"):
        codegen.export_c(TWO, exported, overwrite=True)
    assert (exported / name).read_text() == "mine"
    codegen.export_c(TWO, exported, overwrite=True, discard_changes=True)
    assert not (exported / name).exists()


def test_a_link_in_the_place_of_a_file_is_not_deleted(exported, tmp_path):
    (tmp_path / "mine.c").write_bytes((exported / "main.c").read_bytes())
    (exported / "main.c").unlink()
    (exported / "main.c").symlink_to(tmp_path / "mine.c")
    with pytest.raises(ExportError, match=r"changed since their export \(main\.c\)"):
        codegen.export_c(TWO, exported, overwrite=True)


def test_a_file_that_was_deleted_is_written_again(exported):
    (exported / "README.md").unlink()
    codegen.export_c(TWO, exported, overwrite=True)
    assert (exported / "README.md").is_file()


def test_a_folder_without_a_manifest_is_never_deleted(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ExportError, match="no export wrote"):
        codegen.export_c(ONE, tmp_path, overwrite=True, discard_changes=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


KILLED = """
    import os, pathlib, signal, sys
    import casadi as ca
    from mbcasadi import codegen

    x, rename, count = ca.SX.sym("x"), pathlib.Path.rename, [0]

    def killing(path, target):
        count[0] += 1
        if count[0] == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(path, target)

    pathlib.Path.rename = killing
    codegen.export_c(ca.Function("f", [x], [x + 3]), sys.argv[1], overwrite=True)
"""


@pytest.mark.parametrize("rename", [1, 2])
def test_what_a_killed_export_leaves_is_removed_and_what_it_took_away_comes_back(exported, rename):
    before = (exported / "f.c").read_text()
    program = [sys.executable, "-c", textwrap.dedent(KILLED), str(exported), str(rename)]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    left = [path for path in exported.parent.iterdir() if path != exported]
    assert len(left) == 1
    assert exported.exists() == (rename == 1)
    with pytest.raises(ExportError, match="not empty"):  # the earlier export is back
        codegen.export_c(TWO, exported)
    assert (exported / "f.c").read_text() == before
    assert list(exported.parent.iterdir()) == [exported]
    codegen.export_c(TWO, exported, overwrite=True)


def test_an_export_that_runs_now_or_elsewhere_keeps_its_staging_folder(tmp_path):
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    names = [
        f".out-{staging._host()}-{sleeper.pid}-abc",
        f".out-elsewhere-{2**22 + 1}-abc",
        f".other-{staging._host()}-{2**22 + 1}-abc",
        ".out-notes",
    ]
    for name in names:
        (tmp_path / name).mkdir()
    try:
        codegen.export_c(ONE, tmp_path / "out")
        assert {path.name for path in tmp_path.iterdir()} == {*names, "out"}
    finally:
        sleeper.communicate(b"\n")
    codegen.export_c(TWO, tmp_path / "out", overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {*names[1:], "out"}


TOGETHER = """
    import sys, time
    import casadi as ca
    from mbcasadi import codegen
    from mbcasadi.errors import ExportError

    x = ca.SX.sym("x")
    overwrite = sys.argv[2] == "replacing"
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            codegen.export_c(
                ca.Function("f", [x], [x + float(sys.argv[3])]),
                f"{sys.argv[1]}/{line.strip()}",
                overwrite=overwrite,
            )
            print("written", flush=True)
        except ExportError as error:
            print(error, flush=True)
"""
PROCESSES, ROUNDS = 4, 10


@pytest.mark.skipif(os.name != "posix", reason="Windows locks no folders")
@pytest.mark.parametrize("mode", ["once", "replacing"])
@pytest.mark.every(2)
def test_exports_into_one_folder_at_the_same_time_come_one_after_the_other(tmp_path, mode):
    program = [sys.executable, "-c", textwrap.dedent(TOGETHER), str(tmp_path), mode]
    workers = [
        subprocess.Popen(
            [*program, str(k)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        for k in range(PROCESSES)
    ]
    assert {worker.stdout.readline() for worker in workers} == {"ready\n"}
    for turn in range(ROUNDS):
        for worker in workers:
            worker.stdin.write(f"{turn}\n")
        answers = [worker.stdout.readline().strip() for worker in workers]
        if mode == "replacing":
            assert answers == ["written"] * PROCESSES
        else:
            refused = f"{tmp_path / str(turn)} is not empty; give another folder, or overwrite=True"
            assert sorted(answers) == sorted(["written", *[refused] * (PROCESSES - 1)])
        codegen.open_project(tmp_path / str(turn))
    for worker in workers:
        worker.communicate()
    assert {path.name for path in tmp_path.iterdir()} == {str(turn) for turn in range(ROUNDS)}


@pytest.mark.parametrize("flags", [("-O2", "-ffast-math"), ("-Ofast",), ("-ffinite-math-only",)])
def test_flags_that_remove_the_checks_of_nan_are_refused(tmp_path, flags):
    project = codegen.export_c(ONE, tmp_path / "out")
    with pytest.raises(CompilerError, match="they remove the checks of NaN"):
        project.build(flags=flags)


@pytest.mark.skipif(os.name != "posix", reason="quotes of a POSIX shell")
def test_a_compiler_with_an_open_quote_is_refused(tmp_path, monkeypatch):
    project = codegen.export_c(ONE, tmp_path / "out")
    monkeypatch.setenv("CC", 'gcc -DNAME="x')
    with pytest.raises(CompilerError, match=r"environment's CC\) is no command line: No closing"):
        project.build()
    with pytest.raises(CompilerError, match=r"\(cc=\) is no command line"):
        project.build(cc="gcc '")
