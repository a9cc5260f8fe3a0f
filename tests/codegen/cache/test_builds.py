"""Builds that come from the cache, and those that must not."""

import ctypes
import shutil
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.codegen import BatchBuild, cache, compiler
from mbcasadi.codegen.cache.keys import build_key, text_key
from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.compiled_function import compiled_function
from mbcasadi.codegen.compiler import compile_c, find_compiler
from mbcasadi.errors import CompilerError, ExportError

FLAGS = ("-O0", "-shared", "-fPIC")
SOURCE = '#include "number.h"\ndouble number(void); double number(void) { return NUMBER; }\n'


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def runs(monkeypatch):
    """Return a list that gets one entry for each run of the compiler."""
    seen, run = [], compiler._run

    def counted(command):
        seen.append(command)
        return run(command)

    monkeypatch.setattr(compiler, "_run", counted)
    return seen


def command(folder, *, number=1, flags=FLAGS, source=SOURCE):
    folder.mkdir(exist_ok=True)
    (folder / "number.h").write_text(f"#define NUMBER {number}\n")
    (folder / "source.c").write_text(source)
    return (*find_compiler(), *flags, f"-I{folder}", str(folder / "source.c"), "-lm")


def value(path):
    function = ctypes.CDLL(str(path)).number
    function.restype = ctypes.c_double
    return function()


def test_the_same_c_in_another_folder_is_not_compiled_again(tmp_path, runs):
    first = compile_c(command(tmp_path / "a"), tmp_path / "a" / "first.so")
    again = compile_c(command(tmp_path / "b"), tmp_path / "b" / "again.so")
    assert len(runs) == 1
    assert (first.note, again.note, again.seconds) == ("", "from the cache", 0.0)
    assert first.path.read_bytes() == again.path.read_bytes()
    assert value(again.path) == 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"number": 2},  # in the header
        {"source": SOURCE.replace("NUMBER;", "2 + NUMBER;")},
        {"flags": (*FLAGS, "-O1")},
        {"flags": (*FLAGS, "-DNUMBER_OF_NOTHING=1")},
    ],
)
def test_another_header_source_or_flag_is_another_key(change, tmp_path):
    key = build_key(command(tmp_path / "a"))
    assert key is not None
    assert key == build_key(command(tmp_path / "a"))
    assert key != build_key(command(tmp_path / "a", **change))


def test_instructions_of_another_machine_are_another_key(tmp_path, monkeypatch):
    known = build_key(command(tmp_path / "a", flags=(*FLAGS, "-march=native")))
    plain = build_key(command(tmp_path / "a"))
    assert None not in {known, plain}
    assert known != plain
    monkeypatch.setenv("CPATH", str(tmp_path))
    assert build_key(command(tmp_path / "a")) != plain


def test_another_compiler_is_another_key(tmp_path, monkeypatch):
    key = build_key(command(tmp_path / "a"))
    script = tmp_path / "cc"
    script.write_text(f'#!/bin/sh\nexec {shutil.which(find_compiler()[0])} "$@"\n')
    script.chmod(0o700)
    words = command(tmp_path / "a")
    assert build_key((str(script), *words[1:])) not in {None, key}


@pytest.mark.parametrize("word", ["-g", "-lsomething", "-Wl,-rpath,/x", "-fprofile-use=x", "@file"])
def test_words_of_unknown_meaning_are_never_kept(word, tmp_path):
    assert build_key((*command(tmp_path / "a"), word)) is None


def test_a_damaged_entry_is_compiled_again(tmp_path, own_folder, runs):
    compile_c(command(tmp_path / "a"), tmp_path / "first.so")
    (entry,) = own_folder.iterdir()
    entry.write_bytes(entry.read_bytes()[:-100])
    again = compile_c(command(tmp_path / "a"), tmp_path / "again.so")
    assert len(runs) == 2
    assert value(again.path) == 1.0


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, own_folder):
    own_folder.write_text("a file in its place")
    result = compile_c(command(tmp_path / "a"), tmp_path / "first.so")
    assert value(result.path) == 1.0
    assert "not kept in the cache" in result.note


def test_what_does_not_compile_is_not_kept(tmp_path, own_folder):
    for _ in range(2):
        with pytest.raises(CompilerError, match="the C compiler failed"):
            compile_c(command(tmp_path / "a", source="int;;x("), tmp_path / "x.so")
    assert cache.info().entries == 0


def controller(gain=2.0, z0=0.0, limit=1.0, period=0.01, tuning=0.5):
    q, z, p = (ca.SX.sym(name) for name in ("q", "z", "tuning"))
    u = ca.fmax(-limit, ca.fmin(limit, gain * q + z + p * q))
    names = ["q", "tuning", "z"], ["u", "z_next"]
    return mb.Controller(
        name="held", function=ca.Function("held", [q, p, z], [u, z + period * u], *names),
        inputs=tuple(mb.Signal(name, (name,), ("",)) for name in names[0]),
        outputs=tuple(mb.Signal(name, (name,), ("",)) for name in names[1]),
        u_min=np.array([-limit]), u_max=np.array([limit]), z0=np.array([z0]), period=period,
        tuning=(mb.TuningParameter("p", tuning),),
    )  # fmt: skip


def held(changed, folder):
    project = mb.export_c(changed, folder)
    out = project.step(project.memory(), {"q": [0.4]})
    return float(out["u"][0]), float(out["z_next"][0])


@pytest.mark.parametrize(("change", "u", "z"), [
    ({}, 1.0, 0.01), ({"gain": 1.0}, 0.6, 0.006), ({"z0": -0.5}, 0.5, -0.495),
    ({"limit": 0.75}, 0.75, 0.0075), ({"period": 0.02}, 1.0, 0.02),
    ({"tuning": -1.0}, 0.4, 0.004),
])  # fmt: skip
def test_a_changed_controller_is_never_taken_for_another(change, u, z, tmp_path, runs):
    assert held(controller(), tmp_path / "first") == pytest.approx((1.0, 0.01))
    assert held(controller(), tmp_path / "same") == pytest.approx((1.0, 0.01))
    assert len(runs) == 1
    assert held(controller(**change), tmp_path / "changed") == pytest.approx((u, z))
    assert len(runs) == (2 if change else 1)


def test_the_last_bit_of_a_constant_is_another_text():
    keys = [text_key((controller(gain).function,), ()) for gain in (2.0, 2.0, np.nextafter(2, 3))]
    assert keys[0] == keys[1] != keys[2]
    renamed = replace(controller()).function
    assert text_key((renamed,), ("a",)) != text_key((renamed,), ("b",))


def test_text_from_the_cache_is_the_text(tmp_path):
    first = mb.export_c(controller(), tmp_path / "first")
    again = mb.export_c(controller(), tmp_path / "again")
    with cache.disabled():
        anew = mb.export_c(controller(), tmp_path / "anew")
    texts = {project.source.read_bytes() for project in (first, again, anew)}
    assert len(texts) == 1


def test_a_function_that_is_refused_is_refused_again():
    class Law(ca.Callback):
        def __init__(self):
            super().__init__()
            self.construct("law", {})

        def eval(self, arg):
            return [arg[0]]

    law, x = Law(), ca.MX.sym("x")
    for _ in range(2):
        with pytest.raises(ExportError):
            generate((ca.Function("f", [x], [law(x)]),), "f")
    assert cache.info().entries == 0


def test_compiled_functions_and_batches_come_from_the_cache(tmp_path, runs, monkeypatch):
    x = ca.SX.sym("x")
    f = ca.Function("square", [x], [x * x])
    for k in range(2):
        batched = mb.batch(f, build=BatchBuild(folder=tmp_path / f"{k}"))
        assert np.allclose(batched(np.array([[3.0], [4.0]]))["o0"], [[9.0], [16.0]])
    assert len(runs) == 1
    assert float(compiled_function(f)(3.0)) == 9.0
    assert len(runs) == 2
