"""Equal parts of a scalar function: limbs of one design, columns of one system of equations.

Parts are equal where the same operations are done on other numbers, and no part needs what another
one computes. They are found in the graph of operations alone, without knowledge of a robot:

1. Two values have one colour where their formulas agree but for constants and which inputs they
   read. Values of one colour whose formulas overlap only in what all of them share are a start.
2. Their formulas are laid side by side from the top: `rows` of values that correspond.
3. From there everything that uses corresponding values in the same way corresponds.

What all parts share is computed before them, what joins parts after them.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import NamedTuple

from mbcasadi.codegen.scalar_text.equal_rows import (
    Alignment,
    Row,
    columns_of,
    corresponding_rows,
    given_rows,
    side_by_side,
)
from mbcasadi.codegen.scalar_text.values import Values, needs_of

LEAST_SAVED = 60
"""Operations that a loop saves in the text, at least."""
MOST_VALUES = 30_000
"""Values of a function up to which parts are looked for: seconds."""
MOST_LOOPS = 8
MOST_PARTS = 256
CANDIDATES = 8
"""Starts of one number of parts that are compared."""
TRIALS = 3
"""Numbers of parts with long formulas whose starts are returned, and as many starts of others."""
ENOUGH = 0.8
"""Share of what a number of parts can save at most, above which that number is not tried."""
PAIR, QUAD = 2, 4
"""Numbers in the vectors of most processors."""


class Line(NamedTuple):
    """One operation of equal parts.

    Attributes:
        row: its values, one of each part.
        forms: their formulas without the names of operands.
        columns: the operands, each as one value for each part.
    """

    row: Row
    forms: tuple[str, ...]
    columns: tuple[Row, ...]


@dataclass(frozen=True)
class EqualParts:
    """Parts of a function that one loop computes.

    Attributes:
        count: number of parts.
        lines: what each part computes.
        given: operands that differ between parts and come from outside.
    """

    count: int
    lines: tuple[Line, ...]
    given: tuple[Row, ...]

    @cached_property
    def values(self) -> frozenset[int]:
        """The values that the parts compute."""
        return frozenset(value for line in self.lines for value in line.row)

    @cached_property
    def outside(self) -> frozenset[int]:
        """The values that they need from outside."""
        operands = (k for line in self.lines for column in line.columns for k in column)
        return frozenset(operands) - self.values

    def in_order_of(self, earlier: Sequence["EqualParts"]) -> "EqualParts":
        """Return the parts in the order of earlier ones, where they take values that these make."""
        rows = {frozenset(line.row): line.row for parts in earlier for line in parts.lines}
        for column in self.given:
            row = rows.get(frozenset(column), ())
            if len(row) == self.count:
                return self._in_order([column.index(value) for value in row])
        return self

    def _in_order(self, places: Sequence[int]) -> "EqualParts":
        def sort(row: Row) -> Row:
            return tuple(row[k] for k in places)

        lines = [
            Line(sort(row), tuple(forms[k] for k in places), tuple(map(sort, columns)))
            for row, forms, columns in self.lines
        ]
        return EqualParts(self.count, tuple(lines), tuple(map(sort, self.given)))

    def is_closed(self, needs: Sequence[int]) -> bool:
        """Whether nothing outside that the parts need needs them, and no part needs another."""
        rows = {line.row for line in self.lines}
        columns = {column for line in self.lines for column in line.columns}
        inner = (value for column in columns - rows for value in column)
        own = sum(1 << value for value in self.values)
        return self.values.isdisjoint(inner) and not any(needs[v] & own for v in self.outside)


def equal_parts(values: Values) -> list[EqualParts]:
    """Return the equal parts of a function; each needs earlier ones only.

    After the largest ones, and what follows from them, come those of what they need.

    Operands of sums and products may change places, for corresponding values to have the same.
    """
    if len(values.forms) > MOST_VALUES:
        return []
    colours = colours_of(values)
    needs = needs_of(values.operands, range(len(values.forms)))
    late = _parts(values, colours, needs, set())
    if not late:
        return []  # what they need is all that was looked at
    own = sum(1 << value for parts in late for value in parts.values)
    joined = {value for value, need in enumerate(needs) if need & own}
    ordered: list[EqualParts] = []
    for parts in [*_parts(values, colours, needs, joined), *late]:
        ordered.append(parts.in_order_of(ordered))
    return ordered


def _parts(
    values: Values, colours: list[int], needs: Sequence[int], taken: set[int]
) -> list[EqualParts]:
    """Return equal parts without the values that are taken; none needs a later one."""
    found: list[EqualParts] = []
    while len(found) < MOST_LOOPS:
        parts = _largest(values, colours, needs, taken)
        if parts is None:
            break
        found.append(parts)
        taken = taken | parts.values | set(_needed(parts, needs))
    return found


def _needed(parts: EqualParts, needs: Sequence[int]) -> Iterator[int]:
    """Return everything outside the parts that they need."""
    need = 0
    for value in parts.outside:
        need |= needs[value]
    return (value for value, bit in enumerate(reversed(bin(need)[2:])) if bit == "1")


def _largest(
    values: Values, colours: list[int], needs: Sequence[int], taken: set[int]
) -> EqualParts | None:
    """Return the parts whose loop saves most; None where none saves enough."""
    different = {
        (tuple(start.rows), tuple(start.ends)): start
        for start in starts(values, colours, needs, taken)
    }
    free = sum(bool(made) and k not in taken for k, made in enumerate(values.operations))
    largest, most = None, LEAST_SAVED - 1
    for start in sorted(different.values(), key=lambda start: -start.parts):
        if most > ENOUGH * free * (1 - 1 / start.parts):
            continue
        parts = _parts_from(values, start, needs, taken)
        saved = _saved(values, parts) if parts.is_closed(needs) else 0
        if saved > most:
            largest, most = parts, saved
    return largest


def _saved(values: Values, parts: EqualParts) -> int:
    """Return the operations that the loop saves, less what it takes to move numbers for it.

    Numbers that stand in one array are moved by a loop.
    """
    own = parts.values
    made = sum(
        any(k in values.outputs or not own.issuperset(values.users[k]) for k in line.row)
        for line in parts.lines
    )
    arrays = [values.array(row[0]) or values.is_constant(row[0]) for row in parts.given]
    moved = sum(1 if array else parts.count for array in arrays)
    return len(parts.lines) * (parts.count - _copies(parts.count)) - moved - made


def _copies(count: int) -> int:
    """Return how often compilers write a loop: once for whole vectors, once for what remains."""
    return 1 if count == PAIR or count % QUAD == 0 else 2


def _parts_from(
    values: Values, start: Alignment, needs: Sequence[int], taken: set[int]
) -> EqualParts:
    values = values.copy()
    rows = corresponding_rows(values, start, needs, taken)
    lines = [
        Line(row, tuple(values.forms[value] for value in row), columns_of(values, row))
        for row in rows
    ]
    return EqualParts(start.parts, tuple(lines), tuple(given_rows(values, rows)))


def colours_of(values: Values) -> list[int]:
    """Return one number for each form of a value: operations, not constants, ports, not entries.

    The operands of sums and products are put in the order of their colours.
    """
    numbers: dict[tuple[object, ...], int] = {}
    colours: list[int] = []
    for value, operands in enumerate(values.operands):
        key: tuple[object, ...]
        if values.operations[value]:
            if values.commutes(value) and colours[operands[0]] > colours[operands[1]]:
                values.swap(value)
            key = (values.forms[value], *(colours[k] for k in values.operands[value]))
        else:
            key = (values.array(value) or (values.forms[value] if operands else ""),)
        colours.append(numbers.setdefault(key, len(numbers)))
    return colours


def starts(
    values: Values, colours: list[int], needs: Sequence[int], taken: set[int]
) -> list[Alignment]:
    """Return formulas of one form side by side, long ones that share little.

    Those of each number of parts are compared; the best ones of few numbers are returned.
    """
    classes = defaultdict(list)
    for value, colour in enumerate(colours):
        if value not in taken and values.operations[value]:
            classes[colour].append(value)
    free = _bits(value not in taken for value in range(len(colours)))
    by_count: dict[int, list[tuple[int, Row]]] = defaultdict(list)
    for members in classes.values():
        if 2 <= len(members) <= MOST_PARTS:
            size, row = _independent(members, needs, free)
            if size and len(row) > 1:
                by_count[len(row)].append((size * (len(row) - 1), row))
    groups = sorted((sorted(rows, reverse=True) for rows in by_count.values()), reverse=True)

    @cache  # of rows that are among both choices
    def aligned(row: Row) -> Alignment:
        return side_by_side(values, row, needs, taken)

    chosen: list[list[Alignment]] = []
    for group in groups:
        rows = [row for _, row in group]
        choices = rows[:CANDIDATES], list(islice(_apart(rows, needs, free), CANDIDATES))
        best = [
            max(map(aligned, choice), key=lambda start: start.promise(free)) for choice in choices
        ]
        chosen.append(best[:1] if best[0] is best[1] else best)
    others = [start for group in chosen[TRIALS:] for start in group]
    promising = heapq.nlargest(TRIALS, others, key=lambda start: start.promise(free))
    return [start for group in chosen[:TRIALS] for start in group] + promising


def _apart(rows: Iterable[Row], needs: Sequence[int], free: int) -> Iterator[Row]:
    """Return the rows of whose free formulas earlier ones have less than half."""
    covered = 0
    for row in rows:
        own = needs[row[0]] & free
        if 2 * (own & covered).bit_count() < own.bit_count():
            covered |= own
            yield row


def _bits(values: Iterable[bool]) -> int:
    """Return a set, given as whether each value is in it, as bits."""
    return int("".join("1" if inside else "0" for inside in values)[::-1], 2)


def _independent(members: list[int], needs: Sequence[int], free: int) -> tuple[int, Row]:
    """Return members that share only what all share, and how many free values each has alone."""
    shared = needs[members[0]]
    for value in members[1:]:
        shared &= needs[value]
    least, union, row = len(needs), 0, list[int]()
    for value in members:
        own = needs[value] & ~shared
        if not own & union:
            union |= own
            least = min(least, (own & free).bit_count())
            row.append(value)
    return least, tuple(row)
