"""Printed numbers may differ in their last digit, and in nothing else."""

import pytest
from support.pages import assert_shows, equal_but_for_rounding

ALIKE = [
    ("force -42.38 N", "force -42.37 N"),
    ("[[ 0.     1.   ]\n [-1.844 -0.432]]", "[[-0.     1.   ]\n [-1.843 -0.432]]"),
    ("[0.1   2.   ]", "[0.101 2.   ]"),
    ("margin 3.2e-03", "margin 3.1e-03"),
    ("in 84 % of 17.3 %", "in 85 % of 17.2 %"),
    ("at samples 18..19 of q3", "at samples 18..19 of q3"),
]
DIFFERENT = [
    ("force -42.38 N", "force -42.36 N"),
    ("force -0.01 N", "force 0.01 N"),
    ("margin 3.2e-03", "margin 3.2e-04"),
    ("status 0 (40, 40)", "status 0 (40, 41)"),
    ("[0. 1.]", "[1. 1.]"),
    ("at samples 18..19", "at samples 18..20"),
    ("q2 0.5", "q3 0.5"),
    ("up by 0.5 m", "up by 0.5 mm"),
    ("in 84 %", "in 86 %"),
    ("1.0 2.0", "1.0"),
]


@pytest.mark.parametrize(("printed", "shown"), ALIKE)
def test_a_unit_of_the_last_digit_is_rounding(printed, shown):
    assert equal_but_for_rounding(printed, shown)
    assert equal_but_for_rounding(shown, printed)


@pytest.mark.parametrize(("printed", "shown"), DIFFERENT)
def test_more_than_that_is_another_result(printed, shown):
    assert not equal_but_for_rounding(printed, shown)
    assert not equal_but_for_rounding(shown, printed)


def test_lines_are_found_together_and_in_their_order():
    page = "# Head\na: 1.00 m\nb: 2.00 m\n\na: 3.00 m\nc: 4.00 m\n"
    assert_shows(page, "a: 3.01 m\nc: 4.00 m")
    with pytest.raises(AssertionError, match="does not show"):
        assert_shows(page, "b: 2.00 m\na: 1.00 m")
