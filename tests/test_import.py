"""Importing the package is light: heavy modules are imported by the functions that use them."""

import subprocess
import sys

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
)


def test_heavy_modules_are_not_imported_with_the_package():
    code = f"import sys, mbcasadi; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    code = "import sys, mbcasadi, scipy; scipy.linalg.expm; print('scipy.linalg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"  # the list above would see it
