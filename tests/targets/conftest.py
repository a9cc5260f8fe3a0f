"""Exports with their records, made once."""

import os
import sys
from pathlib import Path

import pytest
from programs import MAKERS, replay

sys.path.append(str(Path(__file__).parent.parent / "codegen"))  # its small problems


CHEAP = ("test_cpp_header.py", "test_ros2_control.py")
"""Files that need no more than g++ and seconds; the others run by `make targets`, in minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what takes minutes to `make targets`, which fails where a tool is missing."""
    if os.environ.get("MBCASADI_TARGETS"):
        return
    here = Path(__file__).parent
    reason = pytest.mark.skip(
        reason="by `make targets`, with the Debian packages of CONTRIBUTING.md"
    )
    for item in items:
        if item.path.parent == here and item.path.name not in CHEAP:
            item.add_marker(reason)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """Return a function from a name of `MAKERS` to its `Recorded`."""
    made = {}

    def of(name):
        if name not in made:
            made[name] = MAKERS[name](tmp_path_factory.mktemp(name) / "out")
        return made[name]

    return of


@pytest.fixture(scope="session")
def reference(recorded, tmp_path_factory):
    """Return a function from a name to what gcc's program for this machine wrote."""
    made = {}

    def of(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(f"reference_{name}")
            made[name] = replay(recorded(name), folder, ("gcc", "-ffp-contract=off"))
        return made[name]

    return of
