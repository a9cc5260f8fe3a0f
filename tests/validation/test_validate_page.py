"""The page on validation: its code runs, and prints what stands behind it."""

import numpy as np
from support.pages import DOCS, assert_prints_what_it_says


def test_the_code_on_the_page_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = assert_prints_what_it_says("guides/validate.md", 10)
    costs = names["run"].what_if.rows
    assert f"the delay costs {100 * (costs[1].tracking / costs[0].tracking - 1):.0f} %" in (
        " ".join((DOCS / "guides/validate.md").read_text(encoding="utf-8").split())
    )
    fallen = names["run_of"](names["law"](0))  # "loses the pendulum"
    assert np.abs(fallen.recording.q[:, :3].sum(axis=1)).max() > 1.0
