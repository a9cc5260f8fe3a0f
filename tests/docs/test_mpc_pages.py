"""The pages on model predictive control print what they say."""

import pytest
from support.pages import assert_prints_what_it_says


@pytest.mark.parametrize(("page", "count"), [("guides/mpc.md", 2), ("guides/nonlinear-mpc.md", 2)])
def test_the_code_of_the_page_prints_what_it_says(page, count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_prints_what_it_says(page, count)


def test_the_code_of_the_page_on_feedback_prints_what_it_says():
    assert_prints_what_it_says("guides/feedback.md", 2)


def test_the_rigid_body_of_the_page_on_walking_is_the_one_shown():
    assert_prints_what_it_says("guides/walking.md", 1, last="## The robot as one rigid body")
