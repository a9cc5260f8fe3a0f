"""Peers of benchmarks: all absent, or stubs that answer by their protocol.

Modules of peers stand in `sys.modules`, programs come from a compiler that is a stub too, acados
and TSID from environments of their own, which the benchmarks find by their variables.
"""

import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from bench import mpc_acados, qp_native, tick_tsid, whole_body

STUBS = Path(__file__).parent / "stubs"
MODULES = ("solved_problems", "proxsuite", "osqp", "crocoddyl")
HEADERS = ("pinocchio", "eigen3", "eiquadprog", "tsid")
LIBRARIES = ("libblasfeo", "libhpipm", "libqpOASES_e", "libacados")


@pytest.fixture(autouse=True)
def quick_solvers(monkeypatch):
    """Compile solvers in C without optimisation: their times are no subject."""
    monkeypatch.setattr(qp_native, "FLAGS", ("-std=gnu99", "-O0"))


@pytest.fixture
def no_peers(monkeypatch):
    """Hide every optional peer."""
    for name in (*MODULES, "cmeel", "quadprog"):
        monkeypatch.setitem(sys.modules, name, None)
    prefixes = [peer.variable for peer in whole_body.PEERS]
    for variable in (mpc_acados.PYTHON, tick_tsid.PREFIX, *prefixes):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """Return a folder of headers, as wheels of the Pinocchio family have it."""
    folder = tmp_path_factory.mktemp("site") / "cmeel.prefix"
    for name in HEADERS:
        (folder / "include" / name).mkdir(parents=True)
    return folder


@pytest.fixture(scope="session")
def acados_python(tmp_path_factory):
    """Return the Python of an environment with acados."""
    folder = tmp_path_factory.mktemp("acados")
    (folder / "nothing.c").write_text("int nothing(void) { return 0; }\n")
    for name in LIBRARIES:
        command = ["cc", "-shared", "-fPIC", folder / "nothing.c", "-o", folder / f"{name}.so"]
        subprocess.run(command, check=True)
    python = folder / "python"
    where = f"ACADOS_STUB={folder} PYTHONPATH={STUBS}"
    python.write_text(f'#!/bin/sh\n{where} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


@pytest.fixture
def stub_peers(monkeypatch, tmp_path, prefix, acados_python):
    """Put a stub in the place of every optional peer but quadprog; return the modules by name."""
    pytest.importorskip("quadprog", reason="quadprog is not installed (extra: test)")
    modules = {}
    for name in MODULES:
        spec = importlib.util.spec_from_file_location(name, STUBS / f"{name}.py")
        modules[name] = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, modules[name])
        spec.loader.exec_module(modules[name])
    cmeel = ModuleType("cmeel")
    cmeel.__spec__ = ModuleSpec("cmeel", None, origin=str(prefix.parent / "cmeel" / "__init__.py"))
    monkeypatch.setitem(sys.modules, "cmeel", cmeel)
    compiler = tmp_path / "c++"
    compiler.write_text(f'#!/bin/sh\nexec {sys.executable} {STUBS / "compiler.py"} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv(mpc_acados.PYTHON, str(acados_python))
    for variable in (tick_tsid.PREFIX, *(peer.variable for peer in whole_body.PEERS)):
        monkeypatch.setenv(variable, str(prefix))
    return modules
