"""The page on supervision prints what it says."""

import shutil

from support.pages import assert_prints_what_it_says

from mbcasadi import models


def test_the_code_of_the_page_prints_what_it_says(tmp_path, monkeypatch):
    (tmp_path / "mujoco_models").mkdir()
    shutil.copy(models.path("four_bar"), tmp_path / "mujoco_models")
    monkeypatch.chdir(tmp_path)
    assert_prints_what_it_says("guides/supervision.md", 3)
