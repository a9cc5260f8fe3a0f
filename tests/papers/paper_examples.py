"""Loads the examples, whose file names begin with a number."""

import runpy
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(number: str) -> dict[str, Any]:
    """Return the names that the example `number` defines, without running its main()."""
    (path,) = EXAMPLES.glob(f"{number}_*.py")
    return runpy.run_path(str(path))
