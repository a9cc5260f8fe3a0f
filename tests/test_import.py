"""Importing the package is light: heavy modules are imported by the functions that use them."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import mbcasadi as mb
from mbcasadi.lazy_imports import homes_of

LAZY = (
    "mbcasadi",
    "mbcasadi.codegen",
    "mbcasadi.control",
    "mbcasadi.validation",
    "mbcasadi.validation.spec",
)

HEAVY = (
    "scipy.stats",
    "scipy.signal",
    "scipy.optimize",
    "scipy.linalg",
    "scipy.integrate",
    "scipy.sparse",
    "matplotlib",
    "pydantic",
    "jinja2",
    "rich",
    "typer",
    "distributed",
    "h5py",
    "imageio",
    "mujoco.viewer",
    "OpenGL",
)


def modules(code):
    """Return which of the heavy modules are loaded after some code, in a fresh interpreter."""
    code = f"import sys, mbcasadi as mb\n{code}\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def loaded(code):
    """Return the modules of the package that some code loads, in a fresh interpreter."""
    code = f"{code}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split() if name.split(".")[0] == "mbcasadi"}


def files_of(package):
    """Return the names of the modules in a package, packages apart."""
    return {path.stem for path in Path(package.__file__).parent.glob("*.py")}


def test_no_public_name_loads_a_heavy_module():
    assert modules("[getattr(mb, name) for name in mb.__all__]") == []
    assert modules("import scipy; scipy.linalg.expm") == ["scipy.linalg"]  # it would be seen


def test_the_package_alone_loads_none_of_its_packages():
    assert loaded("import mbcasadi") == {"mbcasadi", "mbcasadi.lazy_imports"}


def test_every_package_is_an_attribute_in_a_fresh_interpreter():
    packages = [name for name, home in homes_of("mbcasadi").items() if home == "mbcasadi"]
    code = f"import mbcasadi as mb; assert all(getattr(mb, name).__name__ for name in {packages})"
    assert {"mbcasadi.errors", "mbcasadi.control", "mbcasadi.mpc"} <= loaded(code)


def test_a_lazy_package_loads_what_is_used_and_no_more():
    names = {"mbcasadi.validation", "mbcasadi.control", "mbcasadi.codegen"}
    packages = {"mbcasadi", "mbcasadi.lazy_imports", *names}
    assert loaded(f"import {', '.join(sorted(names))}") == packages
    tasks = loaded("from mbcasadi.control import FrameTask")
    assert "mbcasadi.control.tasks.frame_task" in tasks
    assert not tasks & {"mbcasadi.control.laws", "mbcasadi.control.inverse_dynamics.controller"}


@pytest.mark.parametrize("package", LAZY)
def test_names_of_a_lazy_package_are_those_of_its_imports(package):
    module = importlib.import_module(package)
    public = {*module.__all__, *getattr(module, "NOT_STARRED", ())}
    homes = homes_of(package)
    assert public <= homes.keys() <= {*dir(module)}
    assert not public & files_of(module), "importing the file would hide the name"
    for name in public:
        if homes[name] != package:
            assert getattr(module, name) is getattr(importlib.import_module(homes[name]), name)


def test_a_file_of_the_type_of_init_imports_no_other_type_of_controller():
    code = "from mbcasadi.validation.spec import parse_spec, propose_spec, run_spec"
    others = {"mbcasadi.mpc", "mbcasadi.control.laws", "mbcasadi.validation.spec.laws"}
    read = f"{code}; parse_spec({{'type': 'inverse_dynamics_qp', 'task': [{{'type': 'posture'}}]}})"
    assert not loaded(read) & others
    assert "mbcasadi.mpc" in loaded(f"{code}; parse_spec({{'type': 'linear_mpc'}})")
    propose = loaded("from mbcasadi.validation.spec import propose_spec")
    assert not propose & {"mbcasadi.validation.campaigns", "mbcasadi.validation.report"}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mb.nothing
    assert set(mb.__all__) <= set(dir(mb))
