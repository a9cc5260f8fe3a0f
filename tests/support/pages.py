"""Pages of the documentation as tests: their code runs, and prints what stands behind it."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```\n", re.DOTALL)


def blocks_of(page: str, first: str = "", last: str = "") -> list[tuple[str, str]]:
    """Return code and output of a page's blocks, from one heading on, up to another one's end."""
    text = (DOCS / page).read_text(encoding="utf-8")
    end = text.find("\n## ", text.index(last) + 1) if last else -1
    return BLOCK.findall(text[text.index(first) : None if end < 0 else end])


def outputs_of(blocks: list[tuple[str, str]], names: dict[str, Any]) -> list[str]:
    """Return what the blocks print, one after the other, with the same names."""
    printed = []
    for code, _ in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        printed.append(out.getvalue())
    return printed


def assert_prints_what_it_says(page: str, count: int, **where: str) -> dict[str, Any]:
    """Run a page's blocks, compare what they print, and return their names."""
    blocks, names = blocks_of(page, **where), dict[str, Any]()
    assert len(blocks) == count
    for found, (_, printed) in zip(outputs_of(blocks, names), blocks, strict=True):
        assert found == printed
    return names
