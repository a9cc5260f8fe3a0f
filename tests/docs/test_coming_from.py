"""Programs for other libraries print what their pages show, and ours print the same."""

import contextlib
import importlib.util
import io
import runpy
import shutil
import warnings

import pytest
from support.pages import DOCS, equal_but_for_rounding

COMPARE = runpy.run_path(str(DOCS / "tools" / "compare_programs.py"))
PAGES = DOCS / "coming-from"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in a folder that has the robots of the pages."""
    for robot in PAGES.glob("*.urdf"):
        shutil.copy(robot, tmp_path)
    monkeypatch.chdir(tmp_path)


def run_ours(program):
    """Run our program here, where what it needs is imported, and compare what it prints."""
    code, shown = program
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(action="ignore"):
        exec(code, {"__name__": "__main__"})
    assert_shown(out.getvalue(), shown)


def assert_shown(printed, shown):
    assert equal_but_for_rounding(printed, shown), f"{printed}\nis not\n{shown}"


@pytest.mark.parametrize("page", ["pinocchio", "tsid", "mink", "drake", "crocoddyl", "do-mpc"])
@pytest.mark.every(3)
def test_our_program_prints_what_the_page_shows_for_both(page, folder):
    ours, others = COMPARE["programs"](PAGES / f"{page}.md")
    run_ours(ours)
    assert others
    for _, shown in others:
        assert_shown(shown, ours[1])


@pytest.mark.parametrize(
    ("page", "number", "library"),
    [
        ("pinocchio", 0, "pinocchio"),
        ("tsid", 0, "tsid"),
        ("tsid", 1, "placo"),
        ("mink", 0, "mink"),
        ("drake", 0, "pydrake"),
        ("crocoddyl", 0, "crocoddyl"),
        ("do-mpc", 0, "do_mpc"),
    ],
)
@pytest.mark.long
def test_the_program_for_the_other_library_prints_what_the_page_shows(page, number, library):
    if importlib.util.find_spec(library) is None:  # not imported: that takes seconds, and warns
        pytest.skip(f"{library} is not installed")
    _, others = COMPARE["programs"](PAGES / f"{page}.md")
    code, shown = others[number]
    assert_shown(COMPARE["printed_by"](code, PAGES), shown)


def test_our_program_beside_one_that_cannot_run_prints_what_the_page_shows(folder):
    run_ours(COMPARE["programs"](PAGES / "aligator.md")[0])


def test_numbers_of_two_outputs_are_compared_in_their_order():
    difference = COMPARE["largest_difference"]
    assert difference("0 [1.5 -2.25]", "solved [1.5 -2.125]") == pytest.approx(0.125)
    with pytest.raises(ValueError, match="zip"):
        difference("1.0 2.0", "1.0")
