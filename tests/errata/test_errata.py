"""Every erratum has its evidence, and the page says what the script says."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from errata import make_errata, page
from errata.finding import Check, Confirm, Confirmation, Finding
from errata.papers import PAPERS

DOCS = Path(__file__).resolve().parents[2] / "docs"

CHECKS = [check for paper in PAPERS for check in paper.checks]
CONFIRMS = [confirm for paper in PAPERS for confirm in paper.confirms]
WORDS = 3  # leading cells of a row that hold no numbers: where, as printed, what holds


@cache
def evaluated(check: Check) -> Finding:
    return check()


@cache
def confirmed(confirm: Confirm) -> Confirmation:
    return confirm()


def name(check) -> str:
    return f"{check.__module__.split('.')[-1]}-{check.__name__}"


@pytest.mark.parametrize("check", CHECKS, ids=name)
def test_what_is_printed_fails_and_what_is_corrected_holds(check):
    finding = evaluated(check)
    assert finding.printed_error >= finding.fails > finding.holds, finding.equation
    assert finding.correct_error <= finding.holds, finding.equation


@pytest.mark.parametrize("confirm", CONFIRMS, ids=name)
def test_what_is_called_right_holds(confirm):
    found = confirmed(confirm)
    assert found.error <= found.holds, found.equations


def test_every_erratum_stands_once_under_its_paper():
    for paper in PAPERS:
        assert {evaluated(check).paper for check in paper.checks} == {paper.tag}
    places = Counter((evaluated(check).paper, evaluated(check).equation) for check in CHECKS)
    assert set(places.values()) == {1}
    assert Counter(tag for tag, _ in places) == {
        "A05": 17,
        "A10": 11,
        "A16": 10,
        "L15": 15,
        "S20": 5,
    }


def cells(text: str) -> list[tuple[str, ...]]:
    """Return the rows of all tables of a Markdown text."""
    rows = [line.strip("| \n") for line in text.splitlines() if line.startswith("|")]
    return [tuple(row.replace(r"\|", "\0").split(" | ")) for row in rows]


def test_the_page_holds_the_rows_that_the_script_writes():
    text = (DOCS / "results" / "errata.md").read_text(encoding="utf-8")
    written = {row[:WORDS] for row in cells(text)}
    rows = page.correction_rows([evaluated(check) for check in CHECKS])
    for row in cells(page.table(page.CORRECTIONS, rows)):
        assert row[:WORDS] in written, row
    rows = page.confirmation_rows([confirmed(confirm) for confirm in CONFIRMS])
    for row in cells(page.table(page.CONFIRMATIONS, rows)):
        assert row[:2] in {words[:2] for words in written}, row
    corrections = [row for row in cells(text) if len(row) == len(page.CORRECTIONS)]
    assert len(corrections) == len(CHECKS) + 2 * len(PAPERS)  # a head and a rule for each table
    assert page.COMMAND in text


def test_no_code_span_of_the_page_holds_a_bar():
    """Inside a code span renderers disagree on an escaped bar."""
    text = (DOCS / "results" / "errata.md").read_text(encoding="utf-8")
    spans = [span for line in text.splitlines() for span in line.split("`")[1::2]]
    assert spans
    assert not [span for span in spans if "|" in span]


def test_writing_replaces_the_page_in_one_step(tmp_path):
    target = tmp_path / "errata.md"
    target.write_text("old")
    make_errata.write("new\n", target)
    assert target.read_text() == "new\n"
    assert [path.name for path in tmp_path.iterdir()] == ["errata.md"]
