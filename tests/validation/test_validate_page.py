"""The page on validation: its code runs, and prints what stands behind it."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validate.md"
BLOCK = re.compile(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```\n", re.DOTALL)


def test_the_code_on_the_page_prints_what_it_says() -> None:
    ((code, printed),) = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    names: dict = {}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)
    assert out.getvalue() == printed
    costs = names["run"].what_if.rows
    assert f"the delay costs {100 * (costs[1].tracking / costs[0].tracking - 1):.0f} %" in (
        " ".join(PAGE.read_text(encoding="utf-8").split())
    )
    fallen = names["run_of"](names["law"](0))  # "loses the pendulum"
    assert np.abs(fallen.recording.q[:, :3].sum(axis=1)).max() > 1.0
