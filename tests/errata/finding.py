"""What one check returns: a statement of a paper, and numbers for and against it.

Of a check, the code returns the errors, its docstring is what the page says, and the decorator
names the place in the paper.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

EXACT = 1e-9  # identities on numbers of order one; derivatives by differences reach 1e-12
FAILS = 1e-2  # a printed statement whose error stays below this has not been refuted


@dataclass(frozen=True)
class Finding:
    """One statement that does not hold as printed, and what holds instead.

    Attributes:
        paper: tag of the source, such as ``A05``.
        equation: where the statement stands.
        printed: the statement as printed, in this project's notation.
        correct: what holds.
        printed_error: error of the printed statement, at least ``fails``.
        correct_error: error of the corrected statement, at most ``holds``.
        note: what the two numbers measure.
        fails, holds: the bounds on the two errors; only simulations need their own.
    """

    paper: str
    equation: str
    printed: str
    correct: str
    printed_error: float
    correct_error: float
    note: str
    fails: float = FAILS
    holds: float = EXACT


@dataclass(frozen=True)
class Confirmation:
    """Equations that hold as printed, and the largest error found in them."""

    paper: str
    equations: str
    statement: str
    error: float
    holds: float = EXACT


Errors = tuple[float, float] | tuple[float, float, str]
"""As printed, as corrected, and what they measure where the docstring does not say it."""
Check = Callable[[], Finding]
Confirm = Callable[[], Confirmation]
LABELS = re.compile(r"^(?:printed|holds|measured): ", re.MULTILINE)


def said(function: Callable[[], object]) -> list[str]:
    """Return what a docstring says: whole, or behind each of its labels; each on one line."""
    text = inspect.cleandoc(function.__doc__ or "")
    return [" ".join(part.split()) for part in LABELS.split(text) if part]


def erratum(
    paper: str, equation: str, *, fails: float = FAILS, holds: float = EXACT
) -> Callable[[Callable[[], Errors]], Check]:
    """Return the decorator of a check of what does not hold as printed."""

    def decorated(function: Callable[[], Errors]) -> Check:
        @wraps(function)
        def check() -> Finding:
            printed, correct, *measured = function()
            texts = said(function)
            note = measured[0] if measured else texts[2]
            return Finding(paper, equation, *texts[:2], printed, correct, note, fails, holds)

        return check

    return decorated


def confirmed(
    paper: str, equations: str, *, holds: float = EXACT
) -> Callable[[Callable[[], float]], Confirm]:
    """Return the decorator of a check of what holds as printed."""

    def decorated(function: Callable[[], float]) -> Confirm:
        @wraps(function)
        def check() -> Confirmation:
            return Confirmation(paper, equations, *said(function), function(), holds)

        return check

    return decorated
