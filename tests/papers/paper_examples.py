"""Loads the examples, whose file names begin with a number."""

import runpy
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(number: str) -> dict[str, Any]:
    """Return the names that the example `number` defines, without running its main()."""
    sys.path.insert(0, str(EXAMPLES))  # for `from twins import ...`
    (path,) = EXAMPLES.glob(f"{number}_*.py")
    names = runpy.run_path(str(path))
    sys.path.remove(str(EXAMPLES))
    return names
