"""The values of a scalar Function, from CasADi's instructions, and the order to compute them in."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import casadi as ca
import numpy as np

NUMBER = "num"
"""C type of a value: `const casadi_real`, a third of the text where each line has it."""

FUNCTIONS = {
    "({})": (
        *(
            "exp",
            "log",
            "sqrt",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
        ),
        *("asinh", "acosh", "atanh", "floor", "ceil", "fabs", "erf", "erfinv"),
        *("casadi_sign", "casadi_log1p", "casadi_expm1"),
    ),
    "({},{})": (
        *("pow", "atan2", "fmod", "remainder", "copysign"),
        *("casadi_fmin", "casadi_fmax", "casadi_hypot"),
    ),
}
"""Operands → functions of one and of two."""
SUM, DIFFERENCE, PRODUCT = "({}+{})", "({}-{})", "({}*{})"
TURNED = "(-{}+{})"
"""A difference with its operands in the other order."""
CHOICE = "({}!=0?{}:0)"
FORMS = {
    **{ca.OP_ADD: SUM, ca.OP_SUB: DIFFERENCE, ca.OP_MUL: PRODUCT, ca.OP_DIV: "({}/{})"},
    **{ca.OP_NEG: "(-{})", ca.OP_TWICE: "(2.*{})", ca.OP_INV: "(1./{})", ca.OP_SQ: PRODUCT},
    **{ca.OP_LT: "({}<{})", ca.OP_LE: "({}<={})", ca.OP_EQ: "({}=={})", ca.OP_NE: "({}!={})"},
    **{ca.OP_AND: "(({}!=0)&&({}!=0))", ca.OP_OR: "(({}!=0)||({}!=0))", ca.OP_NOT: "({}==0)"},
    **{ca.OP_IF_ELSE_ZERO: CHOICE, ca.OP_CONSTPOW: "pow({},{})"},
    **{
        getattr(ca, f"OP_{name.removeprefix('casadi_').upper()}"): f"{name}{operands}"
        for operands, names in FUNCTIONS.items()
        for name in names
    },
}
"""Operation → C without the names of operands; conditions are comparisons, not numbers."""

SINES = {"sin({})": "sine", "cos({})": "cosine"}
"""Sines and cosines, with the arrays in which those of some angles are taken together."""
SIGNS = {SUM: (1, 1), DIFFERENCE: (1, -1), TURNED: (-1, 1)}
"""The forms of sums, with the signs of their operands."""
SWAPPED = {DIFFERENCE: TURNED, TURNED: DIFFERENCE}
VECTOR = {*SIGNS, PRODUCT, CHOICE, "fabs({})"}.union(
    FORMS[kind]
    for kind in (
        *(ca.OP_DIV, ca.OP_NEG, ca.OP_TWICE, ca.OP_INV),
        *(ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_AND, ca.OP_OR, ca.OP_NOT),
        *(ca.OP_FMIN, ca.OP_FMAX),
    )
)
"""Operations in loops: those that compilers do for several numbers at once, and comparisons.

For other functions, `sqrt` among them, they call the C library.
"""

LARGEST = 2.0**63
"""Whole numbers are written without an exponent below it."""
MOST_UNWANTED = 1024
"""Numbers of an input or output up to which one that is not passed is replaced by an array."""
MOST_EFFORT = 20_000_000_000
"""Values times the square of the outputs up to which the order is chosen: about a second."""


@dataclass
class Values:
    """The values of a function in the order of their definition.

    Attributes:
        forms: right-hand sides with `{}` for each operand; whole ones of numbers.
        operands: the values that each one needs, in the order of its form.
        entries: value → array and entry that it is read from.
        outputs: value → (output, entry) that it is written to.
        inputs, sizes: input or output → how many of its numbers the function knows.
        steps: value → lines of C in place of its definition.
    """

    forms: list[str] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    entries: dict[int, tuple[str, int]] = field(default_factory=dict)
    outputs: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    inputs: dict[int, int] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    steps: dict[int, list[str]] = field(default_factory=dict)

    def add(self, form: str, operands: tuple[int, ...] = ()) -> int:
        """Add a value and return its number."""
        self.forms.append(form)
        self.operands.append(operands)
        return len(self.forms) - 1

    def add_entry(self, array: str, entry: int, operands: tuple[int, ...] = ()) -> int:
        """Add an entry of an array, which operands make, and return its number."""
        value = self.add(f"{array}[{entry}]", operands)
        self.entries[value] = array, entry
        return value

    def text(self, value: int) -> str:
        """Return the right-hand side of a value; `x3` is value 3."""
        return self.forms[value].format(*(f"x{k}" for k in self.operands[value]))

    def copy(self) -> "Values":
        """Return the same values, whose operands may be swapped without a change of these."""
        copied = replace(self, forms=[*self.forms], operands=[*self.operands])
        copied.users, copied.operations = self.users, self.operations
        return copied

    def is_constant(self, value: int) -> bool:
        """Whether a value is a number."""
        return not self.operands[value] and value not in self.entries

    def array(self, value: int) -> str:
        """Return the array of which a value is an entry; empty where it is computed."""
        return self.entries[value][0] if value in self.entries else ""

    @cached_property
    def users(self) -> list[list[int]]:
        """The values that need each one; complete once all values are added."""
        users: list[list[int]] = [[] for _ in self.forms]
        for value, operands in enumerate(self.operands):
            for k in operands:
                users[k].append(value)
        return users

    @cached_property
    def operations(self) -> list[bool]:
        """Which values are operations that compilers do for several numbers at once."""
        return [form in VECTOR for form in self.forms]

    def commutes(self, value: int) -> bool:
        """Whether two operands may change places: of sums, differences and products."""
        return self.forms[value] in SIGNS or self.forms[value] == PRODUCT

    def swap(self, value: int) -> None:
        """Let the two operands of a sum, difference or product change places."""
        first, second = self.operands[value]
        self.operands[value] = second, first
        self.forms[value] = SWAPPED.get(self.forms[value], self.forms[value])


def scalar_functions(functions: Sequence[ca.Function]) -> dict[str, list[ca.Function]]:
    """Return the scalar Functions among some and what they call, by name."""
    found: dict[str, list[ca.Function]] = {}
    for function in functions:
        for part in (function, *function.find_functions()):
            if part.is_a("SXFunction"):
                found.setdefault(part.name(), []).append(part)
    return found


def of_body(functions: Sequence[ca.Function], body: str) -> ca.Function | None:
    """Return the one of Functions of one name that CasADi writes as this body."""
    if len(functions) < 2:
        return functions[0] if functions else None
    for function in functions:
        generator = ca.CodeGenerator("alone")
        generator.add(function)
        if f"{{\n{body}" in str(generator.dump()):
            return function
    return None


def values_of(function: ca.Function, most: float = MOST_UNWANTED) -> Values | None:
    """Return the values of a Function; None where it does more than operations.

    Or where an input or output has more than `most` entries.
    """
    values, current = Values(), dict[int, int]()
    for k in range(function.n_instructions()):
        kind = function.instruction_id(k)
        taken, given = function.instruction_input(k), function.instruction_output(k)
        if kind == ca.OP_OUTPUT:
            port, entry = given
            values.sizes[port] = max(entry + 1, values.sizes.get(port, 0))
            values.outputs.setdefault(current[taken[0]], []).append((port, entry))
        elif kind == ca.OP_INPUT:
            port, entry = taken
            values.inputs[port] = max(entry + 1, values.inputs.get(port, 0))
            current[given[0]] = values.add_entry(f"p{port}", entry)
        elif kind == ca.OP_CONST:
            current[given[0]] = values.add(number(function.instruction_constant(k)))
        elif kind in FORMS:
            operands = tuple(current[i] for i in taken)
            current[given[0]] = values.add(FORMS[kind], operands * (2 if kind == ca.OP_SQ else 1))
        else:
            return None
    sizes = (*values.inputs.values(), *values.sizes.values())
    return values if values.outputs and max(sizes) <= most else None


def number(value: float) -> str:
    """Return a number as CasADi writes it."""
    if not np.isfinite(value):
        return "casadi_nan" if value != value else f"{'-' if value < 0 else ''}casadi_inf"
    return f"{int(value)}." if value == int(value) and abs(value) < LARGEST else f"{value:.16e}"


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
    chosen = _fewest_new_first(needs, sorted(set(outputs)))
    return depth_first(operands, chosen, [need.bit_count() for need in needs])


def _fewest_new_first(needs: Sequence[int], outputs: Sequence[int]) -> list[int]:
    """Return the outputs, always that one next which needs the fewest values not needed before."""
    size = (len(needs) + 7) // 8
    bits = b"".join(needs[value].to_bytes(size, "little") for value in outputs)
    rows = np.frombuffer(bits, np.uint8).reshape(len(outputs), size)
    needed = np.unpackbits(rows, axis=1, bitorder="little").astype(bool)
    new, counts = np.ones(needed.shape[1], bool), needed.sum(axis=1)
    chosen = []
    for _ in outputs:
        k = int(counts.argmin())
        chosen.append(outputs[k])
        first = np.flatnonzero(needed[k] & new)
        new[first] = False
        counts -= needed[:, first].sum(axis=1)
        counts[k] = len(needs) + 1  # never the least again
    return chosen


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
                pending += [(k, False) for k in sorted(operands[value], key=sizes.__getitem__)]
    return order
