"""Limits that may be violated at a price, where they are hard to keep or contradict each other.

A soft row is `lower - s <= row <= upper + s`, s >= 0, with the price `½ c s² + l s`. The slack is
one more unknown that nothing couples with the others. Without a linear price it has either sign,
and one row serves both sides; with one, each side has a row of its own and `s >= 0` is a third.

Prices are in the mechanism's own units (`scaling.py`): with σ, what forces of unit size make of the
row, `c = price (task / σ)²` and `l = linear task² / σ`. A price of 1 makes the violation by such
forces as expensive as missing a unit of acceleration in the tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple, final

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.tick.design import Design, parts_of
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.description import TuningParameter
from mbcasadi.errors import ProblemError
from mbcasadi.qp.rows import Row
from mbcasadi.shapes import require_numbers, require_positive

SOFT_KINDS = ("joints", "normal forces", "friction", "loop forces", "distances")
"""What is limited by rows that may be soft."""

PRICE = 1e4
"""Default price: a limit is violated by 1e-4 of what it costs the tasks."""

LEAST_PRICE = 1e-6
"""Least tuned price."""


@final
@dataclass(frozen=True)
class SoftLimit(Part):
    """Rows that may be violated, and the price of it.

    Attributes:
        limits: one of `SOFT_KINDS` ("joints", "normal forces", "friction", "loop forces",
            "distances"), or a name of `InverseDynamicsQP.row_names`, `*` for any text.
        price: of the squared violation, positive; 1 is the price of the same in the tasks.
        linear: of the violation itself, zero for none. With a linear price the limit holds exactly
            until what it costs the tasks exceeds the price.
    """

    limits: str
    price: float = PRICE
    linear: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(price=self.price)
        require_numbers(linear=self.linear)
        if self.linear < 0:
            raise ProblemError(f"linear = {self.linear}; expected a price that is not negative")

    def bind(self, design: Design) -> Bound:
        """Return its prices as `tuning`: `<limits>.price`, and `<limits>.linear` where used.

        Raises:
            ProblemError: a kind or name has two prices.
        """
        twins = [each for each in parts_of(design, SoftLimit) if each.limits == self.limits]
        if len(twins) > 1:
            raise ProblemError(f"soft limit {self.limits!r} has {len(twins)} prices; expected one")
        entries = [TuningParameter(f"{self.limits}.price", self.price, LEAST_PRICE)]
        if self.linear > 0:
            entries.append(TuningParameter(f"{self.limits}.linear", self.linear))
        tuned = "prices" in design.tunable
        return Bound(f"soft {self.limits}", tuning=tuple(entries) if tuned else ())


def covers(limit: SoftLimit, row: Row) -> bool:
    """Return whether a row is soft by a limit."""
    if limit.limits in SOFT_KINDS:
        return row.kind == limit.limits
    pattern = limit.limits
    return row.name == pattern or fnmatchcase(row.name, pattern.replace("[", "[[]"))


class SoftRow(NamedTuple):
    """A row that is soft: its index, the price, and the rows of a linear price.

    Attributes:
        row: index of the row; that of the upper side with a linear price.
        about: what the row is.
        limit: its price.
        other, slack: indices of the lower side and of `s >= 0`; -1 without a linear price.
    """

    row: int
    about: Row
    limit: SoftLimit
    other: int
    slack: int


def soft_rows(about: Sequence[Row], soft: Sequence[SoftLimit]) -> tuple[SoftRow, ...]:
    """Return the soft rows, in order; the last limit that covers a row counts.

    Args:
        about: what the rows are, before those of linear prices are added or after it.
        soft: the limits that are soft.
    """
    own = [(k, row) for k, row in enumerate(about) if row.kind != ADDED]
    found, end = [], len(own)
    for k, row in own:
        covering = [limit for limit in soft if covers(limit, row)]
        if not covering:
            continue
        other = slack = -1
        if covering[-1].linear > 0:
            other, slack, end = end, end + 1, end + 2
        found.append(SoftRow(k, row, covering[-1], other, slack))
    return tuple(found)


ADDED = "of a price"
"""Kind of rows that a linear price adds."""


def require_soft(about: Sequence[Row], soft: Sequence[SoftLimit]) -> None:
    """Raise `ProblemError` unless each soft limit covers rows that can be soft."""
    for limit in soft:
        covered = [row for row in about if covers(limit, row)]
        if not covered:
            kinds, names = ", ".join(map(repr, SOFT_KINDS)), ", ".join(row.name for row in about)
            raise ProblemError(
                f"soft limit {limit.limits!r}: no row has this name; expected one of {kinds} that "
                f"the controller has, or of its rows: {names}"
            )
        hard = [row for row in covered if not row.may_yield]
        if hard and hard[0].owner[0] == "contact":
            raise ProblemError(
                f"soft limit {limit.limits!r}: {hard[0].name} is of a quadratic cone; expected a "
                "contact with a pyramid, or other rows"
            )
        if hard:
            raise ProblemError(
                f"soft limit {limit.limits!r}: {hard[0].name} is what the actuator can give; "
                "expected other rows, such as 'joints'"
            )
