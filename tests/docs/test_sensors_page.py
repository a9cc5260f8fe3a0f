"""The page on sensors prints what it says."""

from support.pages import assert_prints_what_it_says


def test_the_code_of_the_page_prints_what_it_says():
    assert_prints_what_it_says("guides/sensors.md", 3)
