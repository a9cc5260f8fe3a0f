"""The sections on regulators and filters: their code runs, and prints what stands behind it."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "linearisation.md"
FIRST = "\n## LQR\n"  # sections from this one on are run here; those above by another test
BLOCK = re.compile(r"```python\n(.*?)```\n\n```\n(.*?)```\n", re.DOTALL)
IMPORTS = "import numpy as np\nimport mbcasadi as mb\nimport mujoco_models\n"


def words(text):
    """Return the words of a text, in no order: two joints that move alike may swap places."""
    return sorted(re.findall(r"[^\s,;]+", text))


def test_the_code_of_the_sections_prints_what_they_say():
    text = PAGE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text[text.index(FIRST) :])
    assert len(blocks) == 4
    names: dict[str, object] = {}
    exec(IMPORTS, names)
    for code, printed in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert words(out.getvalue()) == words(printed)
