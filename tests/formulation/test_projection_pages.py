"""The code of pages on formulations runs; the motions are those shown."""

import re
from pathlib import Path

import pytest
from support.pages import equal_but_for_rounding

PAGES = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "formulations"
BLOCK = re.compile(r"^```python\n(.*?)^```\n+^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["projection", "virtual-mass"])
def test_the_code_of_the_page_runs_and_its_motions_are_those_shown(name, capsys):
    blocks = BLOCK.findall((PAGES / f"{name}.md").read_text())
    assert len(blocks) == 2
    printed = []
    for code, _ in blocks:
        exec(compile(code, name, "exec"), {})
        printed.append(capsys.readouterr().out)
    assert equal_but_for_rounding(printed[0], blocks[0][1]), printed[0]
    # operations depend on the release of CasADi: same table, other counts
    assert len(printed[1].splitlines()) == len(blocks[1][1].splitlines())


def test_the_code_of_the_page_on_limbs_runs_and_its_motion_is_that_shown(capsys):
    ((code, shown),) = BLOCK.findall((PAGES / "limbwise.md").read_text())
    exec(compile(code, "limbwise", "exec"), {})
    printed = capsys.readouterr().out
    assert equal_but_for_rounding(printed, shown), printed
