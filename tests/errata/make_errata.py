"""Write docs/results/errata.md: the errata of the source papers, with numbers for and against.

Run it from the folder `tests`: `python -m errata.make_errata`. Needs NumPy and SciPy.
"""

import tempfile
from pathlib import Path

from errata.page import page

OUT = Path(__file__).resolve().parents[2] / "docs" / "results/errata.md"


def write(text: str, path: Path) -> None:
    """Replace a file in one step, so that no reader sees half of it."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, suffix=".tmp", delete=False
    ) as draft:
        draft.write(text)
    finished = Path(draft.name)
    finished.chmod(0o644)
    finished.replace(path)


if __name__ == "__main__":
    write(page(), OUT)
