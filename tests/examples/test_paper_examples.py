"""The examples of the papers: what each is called, says, and shows in the docs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import assert_shows

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "results/papers.md").read_text(encoding="utf-8")
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("0*.py")) if path.name[:2] > "03"]
LARGEST_PICTURE = 150_000  # bytes


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_says_what_one_will_see_and_how_it_is_run(path):
    text = path.read_text(encoding="utf-8")
    first = text.partition("\n")[0]
    assert re.search(r"\[(A05|A10|A16|L15|S20)[^]]*\]\.$", first), first
    assert "You will see" in text.partition('"""\n\n')[0]
    assert f"mbcasadi example {path.stem[3:]} " in DOCS


def test_the_docs_show_a_picture_for_each_and_none_is_large():
    shown = re.findall(r"!\[.+\]\(\.\./(images/paper_\w+\.png)\)", DOCS)
    assert len(shown) == len(EXAMPLES)
    assert {ROOT / "docs" / name for name in shown} == set((ROOT / "docs").glob("images/paper_*"))
    for name in shown:
        assert (ROOT / "docs" / name).stat().st_size < LARGEST_PICTURE


@pytest.mark.long
def test_the_command_in_the_docs_prints_what_they_say_and_writes_the_figure(tmp_path):
    """The quickest of them; `tests/papers` holds the numbers of all."""
    script = ROOT / "examples" / "08_servo_constraint.py"
    figure = tmp_path / "gap.png"
    done = subprocess.run(
        [sys.executable, str(script), str(figure)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert_shows(DOCS, done.stdout)
    assert figure.stat().st_size > 10_000
