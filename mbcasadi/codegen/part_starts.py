"""Formulas from which equal parts of a scalar function may be found."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice

from mbcasadi.codegen.aligned_formulas import Alignment, Row, side_by_side
from mbcasadi.codegen.scalar_values import Values

MOST_PARTS = 256
CANDIDATES = 8
"""Starts of one number of parts that are compared."""
TRIALS = 3
"""Numbers of parts with long formulas whose starts are returned, and as many starts of others."""


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
            key = (values.shapes[value], *(colours[k] for k in values.operands[value]))
        else:
            key = (values.array(value) or (values.shapes[value] if operands else ""),)
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
