"""The gallery of the models counts what its script counts."""

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_model_and_twin_stands_in_the_gallery_with_its_counts():
    page = (DOCS / "results/models-gallery.md").read_text()
    counts = runpy.run_path(str(DOCS / "tools" / "make_model_gallery.py"))["counts"]()
    lines = [line.split(" | ", 1) for line in counts if line and "coordinates" not in line]
    assert len(lines) > 30
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for name, numbers in lines:
        assert any(f"| `{name}` |" in row and f" | {numbers} | " in row for row in rows), name
