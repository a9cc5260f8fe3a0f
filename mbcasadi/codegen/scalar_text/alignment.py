"""Formulas of one form side by side, operation by operation."""

from collections.abc import Sequence
from typing import NamedTuple

from mbcasadi.codegen.scalar_text.values import Values

Row = tuple[int, ...]
"""Values that correspond, one of each part."""


class Alignment(NamedTuple):
    """Formulas side by side.

    Attributes:
        rows: of their operations.
        ends: rows of what they are made of; its values come from outside.
        before: what is needed for that, as bits.
    """

    rows: dict[Row, None]
    ends: dict[Row, None]
    before: int

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(next(iter(self.ends)))

    def promise(self, free: int) -> int:
        """Return the operations that a loop saves at once, less the free ones that it cannot do."""
        return len(self.rows) * (self.parts - 1) - (self.before & free).bit_count()


def side_by_side(values: Values, start: Row, needs: Sequence[int], taken: set[int]) -> Alignment:
    """Return the formulas of values of one form side by side, less what their ends need."""
    rows, ends = _side_by_side(values, start, taken)
    return _without_what_is_needed(rows, ends, needs)


def _side_by_side(
    values: Values, start: Row, taken: set[int]
) -> tuple[dict[Row, None], dict[Row, None]]:
    """Return the rows of the formulas of `start` side by side, and the rows where they end."""
    rows, ends = dict[Row, None](), dict[Row, None]()
    places: dict[int, tuple[int, Row]] = {}
    pending = [start]
    while pending:
        row = pending.pop()
        if row in rows or row in ends:
            continue
        if is_row_of_operations(values, row, taken) and _claim(places, row):
            rows[row] = None
            pending += columns_of(values, row)
        else:
            ends[row] = None
    return rows, ends


def is_row_of_operations(values: Values, row: Row, taken: set[int]) -> bool:
    """Whether a row is of operations of one form, one of each part."""
    return (
        len(set(row)) == len(row)
        and all(values.operations[value] for value in row)
        and len({values.forms[value] for value in row}) == 1
        and taken.isdisjoint(row)
    )


def _claim(places: dict[int, tuple[int, Row]], row: Row) -> bool:
    """Enter the places of a row's values; False where one is in another part or row."""
    wanted = {value: (part, row) for part, value in enumerate(row)}
    if any(places.get(v, place) != place for v, place in wanted.items()):
        return False
    places |= wanted
    return True


def _without_what_is_needed(
    rows: dict[Row, None], ends: dict[Row, None], needs: Sequence[int]
) -> Alignment:
    """Return the rows that nothing outside needs, and what has to be known before."""
    before = 0
    for row in ends:
        for value in row:
            before |= needs[value]
    while True:
        bits = before.to_bytes(len(needs) // 8 + 1, "little")
        late = {
            row: None for row in rows if any(bits[value >> 3] >> (value & 7) & 1 for value in row)
        }
        if not late:
            return Alignment(rows, ends, before)
        rows = {row: None for row in rows if row not in late}
        ends.update(late)
        for row in late:
            for value in row:
                before |= needs[value]


def columns_of(values: Values, row: Row) -> tuple[Row, ...]:
    """Return the operands of a row, as rows."""
    return tuple(zip(*(values.operands[value] for value in row), strict=True))


def given_rows(values: Values, rows: Sequence[Row]) -> list[Row]:
    """Return the operands of rows that come from outside and differ between parts."""
    own = set(rows)
    columns = dict.fromkeys(column for row in rows for column in columns_of(values, row))
    return [column for column in columns if column not in own and len(set(column)) > 1]
