"""Pages of the documentation as tests: their code runs, and prints what stands behind it.

Prints are compared as words and numbers. A number near half-way between two prints is rounded up
by one BLAS, compiler or C library and down by another, so numbers may differ by one unit of their
last printed digit. Whole numbers are counts and have to be equal, percentages apart.
"""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import casadi as ca

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```\n", re.DOTALL)
# sign and whole part, fraction, exponent, percent sign; not the 3 of `v3`, both of `18..19`
NUMBER = re.compile(
    r"(?<!\w)(?<!\d\.)([-+]?\d+)(?:\.(?!\.)(\d*))?(?:e([-+]?\d+))?(?!\w)([ \u202f]?%)?"
)
DIGITS = 6  # that CasADi prints by default
ONE_UNIT = 1 + 1e-6  # of the last printed digit; the part above 1 is rounding of the comparison


def words_of(text: str) -> str:
    """Return the text with a `#` for each number; blanks do not count."""
    return "".join(NUMBER.sub("#", text).split())


def real_array(text: str) -> list[tuple[float, float]]:
    """Return each number of a text with the unit of its last digit; the unit of a count is 0."""
    numbers = []
    for whole, fraction, exponent, percent in NUMBER.findall(text):
        power = int(exponent or 0)
        rounded = fraction or exponent or percent
        unit = 10.0 ** (power - len(fraction)) if rounded else 0.0
        numbers.append((float(f"{whole}.{fraction}e{power}"), unit))
    return numbers


def equal_but_for_rounding(printed: str, shown: str) -> bool:
    """Return whether two texts have the same words, and numbers as near as their last digits."""
    if words_of(printed) != words_of(shown):
        return False
    for (value, unit), (other, other_unit) in zip(
        real_array(printed), real_array(shown), strict=True
    ):
        units = [u for u in (unit, other_unit) if u > 0]  # 0.1 may stand for 0.100 beside 0.101
        if abs(value - other) > ONE_UNIT * min(units, default=0.0):
            return False
    return True


def assert_shows(page: str, printed: str) -> None:
    """Assert that a page has the lines `printed` somewhere, one after the other."""
    lines, wanted = page.splitlines(), printed.splitlines()
    assert wanted
    starts = [i for i, line in enumerate(lines) if equal_but_for_rounding(line, wanted[0])]
    shown = ["\n".join(lines[i : i + len(wanted)]) for i in starts]
    assert any(equal_but_for_rounding(printed, text) for text in shown), (
        f"the page does not show\n{printed}\nbut {shown}"
    )


def blocks_of(page: str, first: str = "", last: str = "") -> list[tuple[str, str]]:
    """Return code and output of a page's blocks, from one heading on, up to another one's end."""
    text = (DOCS / page).read_text(encoding="utf-8")
    end = text.find("\n## ", text.index(last) + 1) if last else -1
    return BLOCK.findall(text[text.index(first) : None if end < 0 else end])


def outputs_of(blocks: list[tuple[str, str]], names: dict[str, Any]) -> list[str]:
    """Return what the blocks print, one after the other, with the same names."""
    printed = []
    ca.DM.set_precision(DIGITS)  # rockit sets another one when it transcribes
    for code, _ in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        printed.append(out.getvalue())
    return printed


def assert_blocks_print_what_they_show(
    blocks: list[tuple[str, str]], names: dict[str, Any]
) -> None:
    """Run blocks of a page one after the other, and compare what they print."""
    for printed, (_, shown) in zip(outputs_of(blocks, names), blocks, strict=True):
        assert equal_but_for_rounding(printed, shown), f"{printed}\nis not\n{shown}"


def assert_prints_what_it_says(page: str, count: int, **where: str) -> dict[str, Any]:
    """Run a page's blocks, compare what they print, and return their names."""
    blocks, names = blocks_of(page, **where), dict[str, Any]()
    assert len(blocks) == count
    assert_blocks_print_what_they_show(blocks, names)
    return names
