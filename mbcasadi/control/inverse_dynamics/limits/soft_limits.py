"""Limits that may be violated at a price, where they are hard to keep or contradict each other.

A soft row is `lower - s <= row <= upper + s`, s >= 0, with the price `½ c s² + l s`. The slack is
one more unknown that nothing couples with the others. Without a linear price it has either sign,
and one row serves both sides; with one, each side has a row of its own and `s >= 0` is a third.

Prices are in the mechanism's own units (`scaling.py`): with σ, what forces of unit size make of the
row, `c = price (task / σ)²` and `l = linear task² / σ`. A price of 1 makes the violation by such
forces as expensive as missing a unit of acceleration in the tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import casadi as ca

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.inequalities import Rows, stack_rows
from mbcasadi.description import TuningParameter
from mbcasadi.description.qp_stages import CONE_ROWS, UNBOUNDED
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_numbers, require_positive

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.problem import Problem
    from mbcasadi.control.inverse_dynamics.scaling import ProblemScales

SOFT_KINDS = {
    "joints": "joint '*': range",
    "normal forces": "contact '*': normal force",
    "friction": "contact '*': friction, face *",
    "loop forces": "loop '*': force*",
    "distances": "distance '*'",
}
"""Names of rows, by what is limited."""

PRICE = 1e4
"""Default price: a limit is violated by 1e-4 of what it costs the tasks."""

LEAST_PRICE = 1e-6
"""Least tuned price."""

QUADRATIC_ROWS = "contact *: friction cone, *"
CLIPPED_ROWS = "actuator '*': force range"
"""Rows that the output never leaves, whatever the QP says: they cannot be soft."""


@dataclass(frozen=True)
class SoftLimit:
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


def covers(limit: SoftLimit, row: str) -> bool:
    """Return whether a row of this name is soft by a limit."""
    pattern = SOFT_KINDS.get(limit.limits, limit.limits)
    return row == pattern or fnmatchcase(row, pattern.replace("[", "[[]"))


class SoftRow(NamedTuple):
    """A row that is soft: its index, the price, and the rows of a linear price.

    Attributes:
        row: index of the row; that of the upper side with a linear price.
        name: of the row.
        limit: its price.
        other, slack: indices of the lower side and of `s >= 0`; -1 without a linear price.
    """

    row: int
    name: str
    limit: SoftLimit
    other: int
    slack: int


def soft_rows(names: Sequence[str], soft: Sequence[SoftLimit]) -> tuple[SoftRow, ...]:
    """Return the soft rows, in order; the last limit that covers a row counts.

    Args:
        names: of the rows, before those of linear prices are added or after it.
        soft: the limits that are soft.
    """
    found, end = [], sum(not name.endswith(ADDED) for name in names)
    for row, name in enumerate(names[:end]):
        covering = [limit for limit in soft if covers(limit, name)]
        if not covering:
            continue
        other = slack = -1
        if covering[-1].linear > 0:
            other, slack, end = end, end + 1, end + 2
        found.append(SoftRow(row, name, covering[-1], other, slack))
    return tuple(found)


ADDED = (", lower side", ", slack")
"""Ends of the names of rows that a linear price adds."""


def require_once(soft: Sequence[SoftLimit]) -> None:
    """Raise `ProblemError` where a kind or name has two prices."""
    names = [limit.limits for limit in soft]
    for name in names:
        if names.count(name) > 1:
            raise ProblemError(f"soft limit {name!r} has {names.count(name)} prices; expected one")


def require_soft(names: Sequence[str], soft: Sequence[SoftLimit]) -> None:
    """Raise `ProblemError` unless each soft limit covers rows that can be soft."""
    for limit in soft:
        covered = [name for name in names if covers(limit, name)]
        if not covered:
            kinds = ", ".join(map(repr, SOFT_KINDS))
            raise ProblemError(
                f"soft limit {limit.limits!r}: no row has this name; expected one of {kinds} that "
                f"the controller has, or of its rows: {', '.join(names)}"
            )
        conic = [name for name in covered if fnmatchcase(name, QUADRATIC_ROWS)]
        if conic:
            raise ProblemError(
                f"soft limit {limit.limits!r}: {conic[0]} is of a quadratic cone; expected a "
                "contact with a pyramid, or other rows"
            )
        hard = [name for name in covered if fnmatchcase(name, CLIPPED_ROWS)]
        if hard:
            raise ProblemError(
                f"soft limit {limit.limits!r}: {hard[0]} is what the actuator can give; expected "
                "other rows, such as 'joints'"
            )


def price_parameters(soft: Sequence[SoftLimit]) -> list[TuningParameter]:
    """Return the entries of `tuning`: `<limits>.price`, and `<limits>.linear` where it is used."""
    entries = []
    for limit in soft:
        entries.append(TuningParameter(f"{limit.limits}.price", limit.price, LEAST_PRICE))
        if limit.linear > 0:
            entries.append(TuningParameter(f"{limit.limits}.linear", limit.linear))
    return entries


def soften(
    problem: "Problem",
    soft: Sequence[SoftLimit],
    entries: Mapping[str, ca.SX],
    scales: "ProblemScales",
    internal_weight: float,
) -> "Problem":
    """Return the problem with a slack in its soft rows: the first of the unknowns w.

    All unknowns w have one weight r_w; the slack is `s = (r_w / c)^½ w`, less `l / c`.

    Args:
        problem: its parts, all rows hard.
        soft: the limits that are soft.
        entries: tuned prices, by name.
        scales: the units of the problem.
        internal_weight: r_w.

    Raises:
        ProblemError: a limit that covers no row, or what an actuator can give.
    """
    if not soft:
        return problem
    require_soft(problem.rows.names, soft)
    chosen = soft_rows(problem.rows.names, soft)
    k, rows = len(chosen), problem.rows
    columns, added = ca.SX(len(rows.names), k), []
    lower, upper = ca.SX(rows.lower), ca.SX(rows.upper)
    for j, each in enumerate(chosen):
        size = scales.inequalities[each.row]
        price = entries.get(f"{each.limit.limits}.price", ca.SX(each.limit.price))
        c = price * (scales.task / size) ** 2
        turn = (internal_weight / c) ** 0.5
        columns[each.row, j] = -turn
        if each.slack < 0:
            continue
        linear = entries.get(f"{each.limit.limits}.linear", ca.SX(each.limit.linear))
        start = linear * scales.task**2 / size / c
        own = some_rows(rows, [each.row])
        below, slack = (_with_slack(row, j, k, turn) for row in (own, _zero(own)))
        added.append((below, lower[each.row] + start, each.name + ADDED[0]))
        added.append((slack, start, each.name + ADDED[1]))
        upper[each.row] = upper[each.row] - start
        lower[each.row] = -UNBOUNDED
    widened = replace(rows, C_w=ca.horzcat(columns, rows.C_w), lower=lower, upper=upper)
    more = [
        replace(part, lower=bound, upper=ca.SX(UNBOUNDED), names=(name,))
        for part, bound, name in added
    ]
    no_force = ca.SX(problem.contacts.of_w.shape[0], k)
    contacts = replace(problem.contacts, of_w=ca.horzcat(no_force, problem.contacts.of_w))
    first = len(rows.names) - CONE_ROWS * rows.cones  # of the rows of cones, which stay the last
    bounded = some_rows(widened, range(first))
    cones = replace(some_rows(widened, range(first, len(rows.names))), cones=rows.cones)
    return replace(problem, rows=stack_rows([bounded, *more, cones]), contacts=contacts)


def _with_slack(row: Rows, j: int, k: int, turn: ca.SX) -> Rows:
    """Return a row with a column of slack in front of its own of w."""
    slack = ca.SX(1, k)
    slack[0, j] = turn
    return replace(row, C_w=ca.horzcat(slack, row.C_w))


def _zero(row: Rows) -> Rows:
    """Return a row without entries."""
    C_p, C_lam, C_w, C_a = (ca.SX(*C.shape) for C in (row.C_p, row.C_lam, row.C_w, row.C_a))
    return replace(row, C_p=C_p, C_lam=C_lam, C_w=C_w, C_a=C_a)


def some_rows(rows: Rows, places: Sequence[int]) -> Rows:
    """Return the rows at these places."""
    chosen = list(places)
    return Rows(
        C_p=rows.C_p[chosen, :],
        C_lam=rows.C_lam[chosen, :],
        C_w=rows.C_w[chosen, :],
        C_a=rows.C_a[chosen, :],
        lower=rows.lower[chosen, 0],
        upper=rows.upper[chosen, 0],
        names=tuple(rows.names[i] for i in chosen),
    )
