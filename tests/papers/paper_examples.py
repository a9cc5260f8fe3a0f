"""Loads the examples, whose file names begin with a number."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

EMPTY_FIGURE = 20_000  # bytes; axes without curves take less
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(number: str) -> dict[str, Any]:
    """Return the names that the example `number` defines, without running its main()."""
    sys.path.insert(0, str(EXAMPLES))  # for `from twins import ...`
    (path,) = EXAMPLES.glob(f"{number}_*.py")
    names = runpy.run_path(str(path))
    sys.path.remove(str(EXAMPLES))
    return names


def results(names: dict[str, Any], folder: pytest.TempPathFactory) -> Any:
    """Return what main() of an example returns; it must also draw its figure."""
    path = folder.mktemp("figure") / "figure.png"
    found = names["main"](str(path))
    assert path.stat().st_size > EMPTY_FIGURE
    return found
