"""The page on linear models: its code runs, and prints what the page shows."""

from support.pages import (
    assert_blocks_print_what_they_show,
    assert_prints_what_it_says,
    blocks_of,
)

PAGE = "guides/linearisation.md"
IMPORTS = "import numpy as np\nimport mbcasadi as mb\nfrom mbcasadi import models\n"


def test_linear_models_print_what_the_page_says():
    assert_prints_what_it_says(PAGE, 6, last="## S20's linear form")


def test_regulators_and_filters_print_what_the_page_says():
    blocks, names = blocks_of(PAGE, first="\n## LQR\n"), {}
    assert len(blocks) == 4
    exec(IMPORTS, names)
    assert_blocks_print_what_they_show(blocks, names)
