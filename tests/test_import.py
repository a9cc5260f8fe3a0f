"""Importing the package is light: heavy modules are imported by the functions that use them."""

import subprocess
import sys

import pytest

import mbcasadi as mb

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


def test_no_public_name_loads_a_heavy_module():
    assert modules("[getattr(mb, name) for name in mb.__all__]") == []
    assert modules("import scipy; scipy.linalg.expm") == ["scipy.linalg"]  # it would be seen


def test_the_package_alone_loads_none_of_its_packages():
    code = (
        "import sys, mbcasadi; print(*sorted(m for m in sys.modules if m.startswith('mbcasadi.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_package_is_an_attribute_in_a_fresh_interpreter():
    code = "import mbcasadi as mb; print(*[getattr(mb, name).__name__ for name in mb._PACKAGES])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"mbcasadi.errors", "mbcasadi.control", "mbcasadi.mpc"} <= set(done.stdout.split())


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mb.nothing
    assert set(mb.__all__) <= set(dir(mb))
