"""Exported C that comes to another machine with its library, which may not run there."""

from dataclasses import replace

import casadi as ca
import pytest
from support.bare_node import remove_compiler

import mbcasadi as mb
from mbcasadi.codegen import compiled_library as libraries
from mbcasadi.codegen.compiled_library import this_machine
from mbcasadi.errors import CompilerError
from mbcasadi.validation.campaigns.shipped_code import ShippedCode

FLAGS = ("-O0",)


@pytest.fixture
def code(tmp_path):
    x = ca.SX.sym("x")
    function = ca.Function("shipped_law", [x], [2 * x], ["x"], ["y"])
    return ShippedCode.of(mb.export_c(function, tmp_path / "c"), FLAGS).with_library()


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A machine that has received nothing yet; its folder and its environment."""
    (tmp_path / "node").mkdir()
    monkeypatch.setattr(
        "mbcasadi.validation.campaigns.shipped_code.process_folder", lambda: tmp_path / "node"
    )
    return monkeypatch


def made_on(code, *, content=None, native=False, **differences):
    library = code.library
    machine = replace(library.machine, **differences)
    library = replace(library, machine=machine, is_native=native)
    return replace(code, library=replace(library, content=content or library.content))


def test_a_library_runs_where_platform_and_c_library_agree(code, node):
    remove_compiler(node)
    for _ in range(2):  # the second time it is there
        project = code.install()
        assert project.build(flags=FLAGS).note == "compiled on another machine"
        assert project.load(flags=FLAGS)(3.0) == 6.0
    with pytest.raises(CompilerError, match="no C compiler"):
        project.build(flags=("-O1",))


def test_a_library_of_another_machine_is_compiled_again(code, node):
    for other in (
        made_on(code, c_library="glibc 2.1"),
        made_on(code, system="plan9 sparc of 32 bits"),
        made_on(code, native=True, instructions=frozenset({"sixteen_lanes"})),
        made_on(code, content=b"no library"),
    ):
        project = other.install()
        assert project.build(flags=FLAGS).command
        assert project.load(flags=FLAGS)(3.0) == 6.0


def test_a_library_of_another_machine_is_refused_where_there_is_no_compiler(code, node):
    remove_compiler(node)
    here, refused = this_machine(), r"cannot run the compiled C of 'shipped_law': it was compiled "
    other = made_on(code, c_library="glibc 2.1")
    with pytest.raises(CompilerError, match=refused + rf"for {here.system} with glibc 2\.1, the "):
        other.install()
    with pytest.raises(CompilerError, match=rf"the node is {here}, and .* Install a compiler"):
        made_on(code, system="plan9 sparc of 32 bits").install()
    with pytest.raises(CompilerError, match=r"instructions that the processor lacks \(avx9\)"):
        made_on(code, native=True, instructions=here.instructions | {"avx9"}).install()
    with pytest.raises(CompilerError, match=r"cannot load .*shipped_law"):
        made_on(code, content=b"no library").install()
    made_on(code, native=True).install()


def test_flags_for_one_processor_are_seen():
    assert not libraries._is_native(("gcc", "-O3", "-std=c99", "-lm"))
    assert libraries._is_native(("gcc", "-march=native", "-O3"))
