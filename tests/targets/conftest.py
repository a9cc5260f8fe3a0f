"""Exports with their records, made once."""

import sys
from pathlib import Path

import pytest
from programs import MAKERS, replay

sys.path.append(str(Path(__file__).parent.parent / "codegen"))  # its small problems


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
