"""The pages on weights, contacts, tasks and softness print what they say."""

import pytest
from support.pages import assert_blocks_print_what_they_show, assert_prints_what_it_says, blocks_of

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP


@pytest.mark.parametrize(
    ("page", "count"),
    [("guides/weights-and-units.md", 4), ("guides/tasks.md", 4), ("explanation/softness.md", 1)],
)
def test_the_code_of_the_page_prints_what_it_says(page, count):
    assert_prints_what_it_says(page, count)


def test_grasps_soles_and_adhesion_of_the_page_on_contacts_are_as_shown():
    names = {"mb": mb, "FrameTask": FrameTask, "InverseDynamicsQP": InverseDynamicsQP}
    blocks = blocks_of("guides/contacts.md", first="## Between two bodies")
    assert len(blocks) == 3
    assert_blocks_print_what_they_show(blocks, names)
