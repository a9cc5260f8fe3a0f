"""Gaps of convex shapes are those of Clarabel, and over directions."""

import pytest

from campaign.shapes import Tally, judge_number

PAIRS = 24  # more: python -m campaign.shapes


@pytest.mark.long
def test_gaps_of_convex_shapes_are_those_of_a_conic_program():
    tally = Tally()
    for number in range(PAIRS):
        judge_number(number, tally)
    assert not tally.wrong
    assert tally.pairs == 2 * PAIRS
