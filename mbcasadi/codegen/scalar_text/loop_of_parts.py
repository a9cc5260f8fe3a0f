"""The C of a loop over equal parts of a scalar function.

What differs between parts stands side by side in arrays, entry by entry, so that compilers make
one vector of the parts: `given` and `constant` are read, `made` is written.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from mbcasadi.codegen.scalar_text.equal_parts import EqualParts, Line
from mbcasadi.codegen.scalar_text.equal_rows import Row
from mbcasadi.codegen.scalar_text.values import CHOICE, NUMBER, SIGNS, Values, order_of
from mbcasadi.codegen.text import comma_list

T = TypeVar("T")

LEAST_TABLE = 12
"""Numbers from which on a table of their places is shorter than a line for each."""

CHOOSE = "_value_if"
"""End of the name of a function that chooses without a branch, which would hinder vectors."""


@dataclass(frozen=True)
class PartsLoop:
    """One loop with the arrays around it.

    Attributes:
        number: of the loop in its function.
        parts: what it computes.
        values: of the function.
        leaving: values of parts that are needed outside.
        prefix: of the name of the function that chooses.
        earlier: the loops before it, whose arrays it may read.
    """

    number: int
    parts: EqualParts
    values: Values
    leaving: set[int]
    prefix: str
    earlier: Sequence["PartsLoop"]

    @property
    def node(self) -> int:
        """Its number behind those of the values."""
        return len(self.values.forms) + self.number

    @property
    def needed(self) -> tuple[int, ...]:
        """The values outside that lines before the loop must have computed."""
        columns = {column for line in self.parts.lines for column in line.columns}
        from_arrays = {row for row in self._given if self._array(row)}
        named = {v for column in columns - from_arrays - self._read.keys() for v in column}
        named -= self.parts.values
        named |= {k for row in from_arrays for value in row for k in self.values.operands[value]}
        nodes = {loop.node for loop in self._read.values()}
        return tuple(sorted(nodes | {v for v in named if not self.values.is_constant(v)}))

    def text_of(self, value: int) -> str:
        """Return how a value of a part is read after the loop."""
        return f"made{self.number}[{self._places[value]}]"

    def c_lines(self) -> Iterator[str]:
        """Return the C of the loop, with what it takes and gives."""
        count, n = self.parts.count, self.number
        yield f"/* {count} equal parts of {len(self.parts.lines)} operations. */"
        if self._constants:
            numbers = [number for row in self._constants for number in row]
            yield f"static const casadi_real constant{n}[{len(numbers)}] = {{{_list(numbers)}}};"
        if self._given:
            yield f"casadi_real given{n}[{len(self._given) * count}];"
        yield f"casadi_real made{n}[{len(self.made) * count}];"
        yield from self._take()
        yield f"for (int i = 0; i < {count}; ++i) {{"
        yield from (f"  {line}" for line in self._body())
        yield "}"
        yield from self._give()

    @cached_property
    def _read(self) -> dict[Row, "PartsLoop"]:
        """Operands that stand side by side in the array of an earlier loop."""
        return {row: loop for row in self.parts.given for loop in self.earlier if row in loop.made}

    @cached_property
    def _given(self) -> dict[Row, int]:
        """Operands from outside, each with its place."""
        rows = [
            row for row in self.parts.given if not self._is_constant(row) and row not in self._read
        ]
        return self._numbered(sorted(rows, key=self._array))

    @cached_property
    def _constants(self) -> dict[tuple[str, ...], int]:
        """Numbers that differ between parts, and signs as numbers, each with its place."""
        rows = [self._numbers(row) for row in self.parts.given if self._is_constant(row)]
        for line in self.parts.lines:
            rows += [_numbers(signs) for signs in _mixed_signs(line) if min(signs) < 0]
        return self._numbered(dict.fromkeys(rows))

    @cached_property
    def made(self) -> dict[Row, int]:
        """Values that are needed after the loop, each with its place, in the order of outputs."""
        needed = self.leaving | self.values.outputs.keys()
        rows = [line.row for line in self.parts.lines if not needed.isdisjoint(line.row)]
        return self._numbered(sorted(rows, key=lambda row: self.values.outputs.get(row[0], [])))

    @cached_property
    def _places(self) -> dict[int, int]:
        return {value: k + i for row, k in self.made.items() for i, value in enumerate(row)}

    def _numbered(self, rows: Iterable[T]) -> dict[T, int]:
        return {row: self.parts.count * k for k, row in enumerate(rows)}

    def _is_constant(self, row: Row) -> bool:
        return all(self.values.is_constant(value) for value in row)

    def _numbers(self, row: Row) -> tuple[str, ...]:
        return tuple(self.values.forms[value] for value in row)

    def _array(self, row: Row) -> str:
        """Return the array in which all values of a row stand; empty where there is none."""
        names = {self.values.array(value) for value in row}
        return names.pop() if len(names) == 1 else ""

    def _take(self) -> Iterator[str]:
        """Return lines that put what differs between parts side by side."""
        places: dict[str, list[tuple[int, int]]] = {}
        for row, start in self._given.items():
            array = self._array(row)
            for i, value in enumerate(row):
                if array:
                    entry = self.values.entries[value][1]
                    places.setdefault(array, []).append((start + i, entry))
                else:
                    yield f"given{self.number}[{start + i}]={self._outside(value)};"
        for array, pairs in places.items():
            yield from _copy(f"given{self.number}", array, pairs)

    def _give(self) -> Iterator[str]:
        """Return lines that write the outputs."""
        places: dict[int, list[tuple[int, int]]] = {}
        for value, place in self._places.items():
            for port, entry in self.values.outputs.get(value, []):
                places.setdefault(port, []).append((entry, place))
        for port, pairs in sorted(places.items()):
            yield from _copy(f"r{port}", f"made{self.number}", pairs)

    def _body(self) -> Iterator[str]:
        """Return the operations of one part, each near its uses."""
        lines = self.parts.lines
        numbers = {line.row: k for k, line in enumerate(lines)}
        operands = [tuple(numbers[c] for c in line.columns if c in numbers) for line in lines]
        for k in order_of(operands, [numbers[row] for row in self.made]):
            line = lines[k]
            names = [f"x{c[0]}" if c in numbers else self._operand(c) for c in line.columns]
            yield f"{NUMBER} x{line.row[0]}={self._formula(line, names)};"
            if line.row in self.made:
                yield f"made{self.number}[{self.made[line.row]} + i]=x{line.row[0]};"

    def _formula(self, line: Line, operands: Sequence[str]) -> str:
        """Return the right-hand side of a line; signs that differ between parts are factors."""
        if signs := _mixed_signs(line):
            terms = (self._signed(s, x) for s, x in zip(signs, operands, strict=True))
            return f"({'+'.join(terms)})"
        chooses = line.forms[0] == CHOICE and operands[0].isidentifier()
        form = f"{self.prefix}{CHOOSE}({{}},{{}})" if chooses else line.forms[0]
        return form.format(*operands)

    def _signed(self, signs: tuple[int, ...], operand: str) -> str:
        return operand if min(signs) > 0 else f"{self._constant(_numbers(signs))}*{operand}"

    def _operand(self, column: Row) -> str:
        """Return how an operand from outside is read in the loop."""
        if len(set(column)) == 1:
            return self._outside(column[0])
        if loop := self._read.get(column):
            return f"made{loop.number}[{loop.made[column]} + i]"
        if column in self._given:
            return f"given{self.number}[{self._given[column]} + i]"
        return self._constant(self._numbers(column))

    def _constant(self, numbers: tuple[str, ...]) -> str:
        return f"constant{self.number}[{self._constants[numbers]} + i]"

    def _outside(self, value: int) -> str:
        """Return a value outside: by its name, or its number."""
        constant = self.values.is_constant(value)
        return f"({self.values.forms[value]})" if constant else f"x{value}"


def _mixed_signs(line: Line) -> tuple[tuple[int, ...], ...]:
    """Return the signs of both operands in each part; nothing where the parts agree."""
    if len(set(line.forms)) == 1:
        return ()
    return tuple(zip(*(SIGNS[shape] for shape in line.forms), strict=True))


def _numbers(signs: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{sign}." for sign in signs)


def _copy(target: str, source: str, pairs: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Return lines that copy entries, as pairs of places in `target` and in `source`."""
    if len(pairs) < LEAST_TABLE:
        yield from (f"{target}[{to}]={source}[{start}];" for to, start in pairs)
        return
    yield "{"
    indices = []
    for name, places in zip(("to", "from"), zip(*pairs, strict=True), strict=True):
        first = places[0]
        if places == tuple(range(first, first + len(places))):
            indices.append(f"{first} + k" if first else "k")
        else:
            indices.append(f"{name}[k]")
            yield f"  static const short {name}[] = {{{_list(places)}}};"
    yield f"  for (int k = 0; k < {len(pairs)}; ++k)"
    yield f"    {target}[{indices[0]}]={source}[{indices[1]}];"
    yield "}"


def _list(items: Iterable[str | int]) -> str:
    return comma_list(items, "    ")
