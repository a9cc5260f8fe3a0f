"""Runs the examples, whose file names begin with a number."""

import runpy
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EMPTY_FIGURE = 15_000  # bytes; axes without curves take less


def example(number: int) -> dict[str, Any]:
    """Return the names that the example defines, without running its main()."""
    (path,) = EXAMPLES.glob(f"{number:02d}_*.py")
    return runpy.run_path(str(path))


def results(names: dict[str, Any], folder: Path) -> Any:
    """Return what the example's main() returns; it must also draw its figure."""
    figure = folder / "figure.png"
    found = names["main"](str(figure))
    assert figure.stat().st_size > EMPTY_FIGURE
    return found


def shown(number: int, folder: Path) -> tuple[dict[str, Any], Any]:
    """Return the example's names and results; its first lines must say what one will see."""
    names = example(number)
    assert "You will see" in names["__doc__"]
    return names, results(names, folder)
