"""Rows of corresponding values in equal parts of a scalar function."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mbcasadi.codegen.scalar_text.values import SIGNS, Values

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
    return tuple(zip(*map(values.operands.__getitem__, row), strict=True))


def given_rows(values: Values, rows: Sequence[Row]) -> list[Row]:
    """Return the operands of rows that come from outside and differ between parts."""
    own = set(rows)
    columns = dict.fromkeys(column for row in rows for column in columns_of(values, row))
    return [column for column in columns if column not in own and len(set(column)) > 1]


Place = tuple[int, int]
"""The part that a value belongs to, and the number of its row."""

Key = tuple[object, ...]


def corresponding_rows(
    values: Values, start: Alignment, needs: Sequence[int], taken: set[int]
) -> list[Row]:
    """Return the rows that follow from some: what they are made of, and what is made of them.

    Nothing that a part needs from outside needs a value of a row. Operands of sums and products
    change places where that lets values correspond.

    Args:
        values: of the function.
        start: rows, and where they end.
        needs: of each value, as bits.
        taken: values that must not be in rows.
    """
    matching = _Matching(values, needs, taken, start)
    return _with_operands(values, matching.all_rows(), needs, taken)


def _with_operands(
    values: Values, rows: list[Row], needs: Sequence[int], taken: set[int]
) -> list[Row]:
    """Return the rows with those from outside that nothing else outside is needed for.

    They are operations of one kind on numbers that the parts share or take.
    """
    own = {value for row in rows for value in row}
    columns: dict[int, set[Row]] = defaultdict(set)
    for row in rows:
        _add_columns(columns, columns_of(values, row))
    given, rows = given_rows(values, rows), [*rows]
    needed = _needed(columns.keys() - own, needs)
    added = True
    while added:
        added = False
        pending, given = given, []
        for row in pending:
            alone = all(columns[value] == {row} for value in row)
            if not alone or not is_row_of_operations(values, row, taken | own):
                continue
            if any(needed >> value & 1 for value in row):
                given.append(row)
                continue
            rows.append(row)
            added = True
            own |= set(row)
            _add_columns(columns, columns_of(values, row))
            given += columns_of(values, row)
            needed = _needed(columns.keys() - own, needs)
    return rows


def _add_columns(columns: dict[int, set[Row]], added: Iterable[Row]) -> None:
    """Note for each value the columns of operands in which it stands."""
    for column in added:
        for value in column:
            columns[value].add(column)


def _needed(values: Iterable[int], needs: Sequence[int]) -> int:
    """Return what some values need beside themselves, as bits."""
    needed = 0
    for value in values:
        needed |= needs[value] ^ (1 << value)
    return needed


class _Matching:
    """Rows that follow from others, by what they are made of.

    Attributes:
        places: value → its part, and a number of its row or of the row of leaves it stands in.
        before: the values that must be known before the parts, as bits.
        depends: whether a value may need one of a part.
    """

    def __init__(
        self, values: Values, needs: Sequence[int], taken: set[int], start: Alignment
    ) -> None:
        self.values, self.needs, self.taken, self.start = values, needs, taken, start
        self.before, self.count = start.before, start.parts
        self.places: dict[int, Place] = {}
        self.depends = [False] * len(values.forms)
        self.rows: list[Row] = []
        self.waiting: dict[int, None] = {}
        self.numbers = 0

    def all_rows(self) -> list[Row]:
        """Return all rows."""
        pending: list[int] = []
        for row in self.start.rows:
            self.rows.append(row)
            pending += self._enter(row)
        for row in self.start.ends:
            pending += self._enter_leaves(row)
        while pending:
            self._match(pending)
            pending = self._match_loosely()
        return self.rows

    def _enter(self, row: Row) -> list[int]:
        """Give the values of a row their places; return their users."""
        for part, value in enumerate(row):
            self.places[value] = (part, self.numbers)
        self.numbers += 1
        depends, users_of, before = self.depends, self.values.users, self.before
        users = [user for value in row for user in users_of[value]]
        pending = list(users)
        for value in pending:
            if not depends[value] and not before >> value & 1:
                depends[value] = True
                pending += users_of[value]
        return users

    def _enter_leaves(self, row: Row) -> list[int]:
        """Let values outside, other ones for each part, tell the parts from each other."""
        for value in row:
            self.before |= self.needs[value]
        alike = len(set(row)) < len(row) or any(value in self.places for value in row)
        if alike or all(self.values.is_constant(value) for value in row):
            return []
        return self._enter(row)

    def _match(self, pending: list[int]) -> None:
        """Form rows of values that are made of the same, until there are no more."""
        groups: dict[Key, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        pending += self.waiting
        self.waiting.clear()
        while pending:
            value = pending.pop()
            part = self._part(value)
            if value in self.waiting or part is None:
                continue
            self.waiting[value] = None
            group = groups[self._key(value, loose=False)]
            group[part].append(value)
            if len(group) == self.count and all(group.values()):
                pending += self._new_row(tuple(group[k].pop() for k in range(self.count)))

    def _match_loosely(self) -> list[int]:
        """Form rows of values that take different numbers from outside; return their users."""
        groups: dict[Key, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for value in sorted(self.waiting):
            part = self._part(value)
            if part is not None:
                groups[self._key(value, loose=True)][part].append(value)
        users: list[int] = []
        for group in groups.values():
            if len(group) == self.count:
                for row in zip(*(group[k] for k in range(self.count)), strict=False):
                    if all(self._part(value) is not None for value in row):
                        users += self._new_row(row)
        return users

    def _new_row(self, row: Row) -> list[int]:
        """Enter a row, and what it takes from outside; return the users of both."""
        self.rows.append(row)
        for value in row:
            del self.waiting[value]
        users = self._enter(row)
        for column in columns_of(self.values, row):
            if column[0] not in self.places:
                users += self._enter_leaves(column)
        return users

    def _part(self, value: int) -> int | None:
        """Return the part of a value of known operands; None where it is in none, or done."""
        if value in self.places or value in self.taken or self.before >> value & 1:
            return None
        if not self.values.operations[value]:
            return None
        parts = set()
        for k in self.values.operands[value]:
            if k in self.places:
                parts.add(self.places[k][0])
            elif self.depends[k] and not self.before >> k & 1:
                return None
        return parts.pop() if len(parts) == 1 else None

    def _key(self, value: int, *, loose: bool) -> Key:
        """Return what a value is made of; its operands come in the order of their rows."""
        marks = [self._mark(k, loose=loose) for k in self.values.operands[value]]
        if self.values.commutes(value) and marks[0] > marks[1]:
            self.values.swap(value)
            marks.reverse()
        form = self.values.forms[value]
        return ("sum" if loose and form in SIGNS else form, *marks)

    def _mark(self, value: int, *, loose: bool) -> tuple[int, str]:
        if value in self.places:
            return (self.places[value][1], "")
        if loose:
            return (-1, "")
        return (-1, self.values.forms[value] if self.values.is_constant(value) else f"x{value}")
