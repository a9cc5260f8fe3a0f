"""What one check returns: a statement of a paper, and numbers for and against it."""

from collections.abc import Callable
from dataclasses import dataclass

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


Check = Callable[[], Finding]
Confirm = Callable[[], Confirmation]
