"""The tests with every Python and MuJoCo that mbcasadi supports.

    pip install nox
    nox -f .ci/matrix.py -l                              # what there is
    nox -f .ci/matrix.py -s "tests-3.13(mujoco='3.10')"  # one of them
    nox -f .ci/matrix.py -s tests-3.13 -- tests/cli      # pytest's arguments behind --
    nox -f .ci/matrix.py -s wheel-3.13 -- dist/a.whl     # a wheel that is there already

A Python that is not installed is skipped by name. `PYTEST_WORKERS` is the number of workers, 2 by
default.
"""

import os
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parents[1]

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MUJOCOS = {"3.10": "mujoco==3.10.*", "3.17": "mujoco==3.17.*", "4": "mujoco>=4,<5"}
WORKERS = os.environ.get("PYTEST_WORKERS", "2")

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False


@nox.session(python=PYTHONS)
@nox.parametrize("mujoco", list(MUJOCOS))
def tests(session: nox.Session, mujoco: str) -> None:
    """Run the tests on the source tree with one MuJoCo."""
    session.chdir(ROOT)
    session.install("-e", ".[test]", MUJOCOS[mujoco])
    session.install(
        "--no-deps", "dm_control"
    )  # its models; what it needs has no wheels from 3.13 on
    session.run("python", "-m", "pytest", "-n", WORKERS, "--all", *session.posargs)


@nox.session(python=PYTHONS)
def wheel(session: nox.Session) -> None:
    """Install the wheel, built or named, with `[tools]` alone, and do what a first user does."""
    folder = Path(session.create_tmp()).resolve()
    if session.posargs:
        wheel = Path(session.invoked_from, session.posargs[0]).resolve()
    else:
        session.run("python", "-m", "pip", "wheel", "--no-deps", "-w", str(folder), str(ROOT))
        wheel = max(folder.glob("*.whl"), key=lambda file: file.stat().st_mtime)
    session.install(f"mbcasadi[tools] @ {wheel.as_uri()}")
    session.chdir(folder)
    session.run("mbcasadi", "inspect", "four_bar")
    session.run("mbcasadi", "check", "four_bar")
    session.run("mbcasadi", "demo")
