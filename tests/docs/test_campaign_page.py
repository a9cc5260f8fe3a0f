"""The page on campaigns: its code runs, and prints what stands behind it."""

from support.pages import assert_prints_what_it_says


def test_the_code_on_the_page_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = assert_prints_what_it_says("guides/campaigns.md", 3)
    assert len(names["mb"].validation.open_campaign("runs.sqlite").outcomes) == 16
