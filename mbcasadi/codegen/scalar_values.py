"""The values of a scalar function in CasADi's C, and the order in which they are computed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

DECLARATION = re.compile(r"casadi_real a\d+(?:, a\d+)*;")
INPUT = re.compile(r"(a\d+)=(?:arg\[\d+\]\? )?arg\[(\d+)\]\[(\d+)\](?: : 0)?;")
OUTPUT = re.compile(r"(?:if \(res\[\d+\]!=0\) )?res\[(\d+)\]\[(\d+)\]=(a\d+);")
ASSIGNMENT = re.compile(r"(a\d+)=([^;=]*(?:[=<!]=[^;=]*)?);")
VARIABLE = re.compile(r"\ba\d+\b")
SQUARE = re.compile(r"casadi_sq\((a\d+)\)")
"""A function of CasADi's, which compilers call where another library may replace it."""
ENTRY = re.compile(r"(\w+)\[\d+\]")
VALUE = re.compile(r"\bx(\d+)\b")

VECTOR = re.compile(r"[-+*/().0-9xe]+|fabs\(x\)|\(x\?x:0\)")
PRODUCT = "(x*x)"
SIGNS = {"(x+x)": (1, 1), "(x-x)": (1, -1), "(-x+x)": (-1, 1)}
"""The shapes of sums, with the signs of their operands."""
SWAPPED = {"(x-x)": "(-x+x)", "(-x+x)": "(x-x)"}

MOST_UNWANTED = 1024
"""Numbers of an input or output up to which one that is not passed is replaced by an array."""
MOST_EFFORT = 20_000_000_000
"""Values times the square of the outputs up to which the order is chosen: about a second."""


@dataclass
class Values:
    """The values of a function in the order of their definition.

    Attributes:
        texts: right-hand sides, in which `x3` is value 3.
        operands: the values that each one needs, as often and in the order in which its text
            names them.
        outputs: value → (output, entry) that it is written to.
        inputs, sizes: input or output → how many of its numbers the function knows.
        checked: a caller need not pass all inputs and outputs.
        steps: value → lines of C in place of its definition.
    """

    texts: list[str] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    outputs: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    inputs: dict[int, int] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    checked: bool = False
    steps: dict[int, list[str]] = field(default_factory=dict)

    def add(self, text: str, operands: tuple[int, ...]) -> int:
        """Add a value and return its number."""
        self.texts.append(text)
        self.operands.append(operands)
        return len(self.texts) - 1

    @cached_property
    def shapes(self) -> list[str]:
        """The texts without the names of operands; complete once all values are added."""
        return [
            VALUE.sub("x", text) if operands else text
            for text, operands in zip(self.texts, self.operands, strict=True)
        ]

    def copy(self) -> "Values":
        """Return the same values, whose operands may be swapped without a change of these."""
        copied = replace(self, texts=[*self.texts], operands=[*self.operands])
        copied.shapes = [*self.shapes]
        copied.users, copied.operations = self.users, self.operations
        return copied

    def is_constant(self, value: int) -> bool:
        """Whether a value is a number."""
        return not self.operands[value] and not self.texts[value].startswith("p")

    def array(self, value: int) -> str:
        """Return the array of which a value is an entry; empty where it is computed."""
        match = ENTRY.fullmatch(self.texts[value])
        return match[1] if match else ""

    @cached_property
    def users(self) -> list[list[int]]:
        """The values that need each one; complete once all values are added."""
        users: list[list[int]] = [[] for _ in self.texts]
        for value, operands in enumerate(self.operands):
            for k in operands:
                users[k].append(value)
        return users

    @cached_property
    def operations(self) -> list[bool]:
        """Which values are operations that compilers do for several numbers at once.

        They call the C library for functions, `sqrt` among them, and branch at comparisons.
        """
        vector = {shape: VECTOR.fullmatch(shape) is not None for shape in set(self.shapes)}
        return [
            bool(operands) and vector[shape]
            for operands, shape in zip(self.operands, self.shapes, strict=True)
        ]

    def is_sum(self, value: int) -> bool:
        """Whether a value is a sum or a difference."""
        return self.shapes[value] in SIGNS

    def commutes(self, value: int) -> bool:
        """Whether two operands may change places: of sums, differences and products."""
        return self.is_sum(value) or self.shapes[value] == PRODUCT

    def swap(self, value: int) -> None:
        """Let the two operands of a sum, difference or product change places."""
        first, second = self.operands[value]
        shape = SWAPPED.get(self.shapes[value], self.shapes[value])
        self.operands[value], self.shapes[value] = (second, first), shape
        names = iter((f"x{second}", f"x{first}"))
        self.texts[value] = re.sub("x", lambda _: next(names), shape)


def read_values(body: str) -> Values | None:
    """Return the values of a body; None where it holds more than scalar operations."""
    values, current = Values(checked="!=0) res[" in body or "? arg[" in body), dict[str, int]()
    for line in body.splitlines():
        line = line.strip()
        if DECLARATION.fullmatch(line):
            continue
        if match := INPUT.fullmatch(line):
            port, entry = int(match[2]), int(match[3])
            values.inputs[port] = max(entry + 1, values.inputs.get(port, 0))
            current[match[1]] = values.add(f"p{port}[{entry}]", ())
        elif match := OUTPUT.fullmatch(line):
            port, entry = int(match[1]), int(match[2])
            values.sizes[port] = max(entry + 1, values.sizes.get(port, 0))
            values.outputs.setdefault(current[match[3]], []).append((port, entry))
        elif (match := ASSIGNMENT.fullmatch(line)) and "arg" not in line and "res" not in line:
            formula = SQUARE.sub(r"(\1*\1)", match[2]).replace("casadi_fabs", "fabs")
            operands = tuple(current[name] for name in VARIABLE.findall(formula))
            text = VARIABLE.sub(lambda name: f"x{current[name[0]]}", formula)
            current[match[1]] = values.add(text, operands)
        else:
            return None
    sizes = (*values.inputs.values(), *values.sizes.values())
    return values if values.outputs and max(sizes) <= MOST_UNWANTED else None


def needs_of(operands: Sequence[tuple[int, ...]], order: Sequence[int]) -> list[int]:
    """Return for each value the set, as bits, of the values that it needs, itself included.

    Args:
        operands: of each value.
        order: the values, each after its operands.
    """
    needs = [0] * len(operands)
    for value in order:
        need = 1 << value
        for k in operands[value]:
            need |= needs[k]
        needs[value] = need
    return needs


def order_of(operands: Sequence[tuple[int, ...]], outputs: Sequence[int]) -> list[int]:
    """Return the values that outputs need, each after its operands and near its uses.

    The next output is the one that needs the fewest new values; its operands come depth first,
    the longest one first. So one limb is done after the other, and few values wait.
    """
    plain = depth_first(operands, outputs, [0] * len(operands))
    if len(operands) * len(outputs) ** 2 > MOST_EFFORT:
        return plain
    needs = needs_of(operands, plain)
    waiting, chosen, done = set(outputs), [], 0
    while waiting:
        value = min(waiting, key=lambda v: ((needs[v] & ~done).bit_count(), v))
        waiting.remove(value)
        chosen.append(value)
        done |= needs[value]
    return depth_first(operands, chosen, [need.bit_count() for need in needs])


def depth_first(
    operands: Sequence[tuple[int, ...]], outputs: Sequence[int], sizes: Sequence[int]
) -> list[int]:
    """Return the values that outputs need, each after its operands, those of great size first."""
    done, order = [False] * len(operands), []
    for output in outputs:
        pending = [(output, False)]
        while pending:
            value, ready = pending.pop()
            if done[value]:
                continue
            if ready:
                done[value] = True
                order.append(value)
            else:
                pending.append((value, True))
                pending += [(k, False) for k in sorted(operands[value], key=lambda k: sizes[k])]
    return order
