"""The page on linear models: its code runs, and prints what stands behind it."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "linearisation.md"
LAST = "## S20's linear form"  # sections up to this one are run here
BLOCK = re.compile(r"```python\n(.*?)```\n\n```\n(.*?)```\n", re.DOTALL)


def test_the_code_on_the_page_prints_what_it_says():
    text = PAGE.read_text(encoding="utf-8")
    end = text.find("\n## ", text.index(LAST) + 1)
    blocks = BLOCK.findall(text[: end if end > 0 else None])
    assert len(blocks) > 4
    names: dict[str, object] = {}
    for code, printed in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert out.getvalue() == printed
