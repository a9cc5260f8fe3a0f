"""The pages on weights, contacts, tasks, and on other libraries print what they say."""

import re

import pytest
from support.pages import (
    DOCS,
    assert_blocks_print_what_they_show,
    assert_prints_what_it_says,
    blocks_of,
)

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP


@pytest.mark.parametrize(
    ("page", "count"), [("guides/weights-and-units.md", 4), ("guides/tasks.md", 4)]
)
def test_the_code_of_the_page_prints_what_it_says(page, count):
    assert_prints_what_it_says(page, count)


def test_grasps_soles_and_adhesion_of_the_page_on_contacts_are_as_shown():
    names = {"mb": mb, "FrameTask": FrameTask, "InverseDynamicsQP": InverseDynamicsQP}
    blocks = blocks_of("guides/contacts.md", first="## Between two bodies")
    assert len(blocks) == 3
    assert_blocks_print_what_they_show(blocks, names)


def test_our_programs_beside_those_of_others_print_what_they_say(tmp_path, monkeypatch):
    text = (DOCS / "coming-from/tsid.md").read_text(encoding="utf-8")
    robot = re.search(r"```xml\n(.*?)```", text, re.DOTALL)
    assert robot
    (tmp_path / "arm.urdf").write_text(robot[1])
    monkeypatch.chdir(tmp_path)
    assert_prints_what_it_says("coming-from/tsid.md", 3)


def test_the_same_regulator_comes_from_python_control():
    assert_prints_what_it_says("coming-from/python-control.md", 2)
