"""Scalar functions of CasADi's C, written as by hand.

CasADi writes one operation in a line, on variables that it uses again, checks every input and
output for being wanted, and calls the C library for each sine. Here each value has a name of its
own and stands near its use, each pointer is checked once, and the sines and cosines of the inputs
are taken together in a loop that compilers turn into vectors. The operations are the same, so the
results are, but for the last bits of sines and cosines.
"""

import re
from dataclasses import dataclass, field

from mbcasadi.codegen.text import template

SCALAR_FUNCTION = re.compile(
    r"(?P<head>static int casadi_f\d+\([^\n]*\) \{\n)(?P<body>(?:  [^\n]*;\n)*?)  return 0;\n\}\n"
)
DECLARATION = re.compile(r"casadi_real a\d+(?:, a\d+)*;")
INPUT = re.compile(r"(a\d+)=(?:arg\[\d+\]\? )?arg\[(\d+)\]\[(\d+)\](?: : 0)?;")
OUTPUT = re.compile(r"(?:if \(res\[\d+\]!=0\) )?res\[(\d+)\]\[(\d+)\]=(a\d+);")
ASSIGNMENT = re.compile(r"(a\d+)=([^;=]*(?:[=<!]=[^;=]*)?);")
VARIABLE = re.compile(r"\ba\d+\b")
SINE = re.compile(r"(sin|cos)\(x(\d+)\)")

LEAST_ANGLES = 3
"""From so many on a loop over them is shorter than calls of the C library."""
MOST_EFFORT = 20_000_000_000
"""Values times the square of the outputs up to which the order is chosen: about a second."""
MOST_UNWANTED = 1024
"""Numbers of an input or output up to which one that is not passed is replaced by an array."""


@dataclass
class Values:
    """The values of a function in the order of their definition.

    Attributes:
        texts: right-hand sides, in which `x3` is value 3.
        operands: the values that each one needs.
        outputs: value → (output, entry) that it is written to.
        inputs, sizes: input or output → how many of its numbers the function knows.
        checked: a caller need not pass all inputs and outputs.
    """

    texts: list[str] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    outputs: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    inputs: dict[int, int] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    checked: bool = False

    def add(self, text: str, operands: tuple[int, ...]) -> int:
        """Add a value and return its number."""
        self.texts.append(text)
        self.operands.append(operands)
        return len(self.texts) - 1


def with_scalar_bodies(text: str, prefix: str) -> str:
    """Return CasADi's C with its scalar functions rewritten.

    Args:
        text: of `casadi_c.generate`; the includes before it have `<float.h>` and `<string.h>`.
        prefix: of the name of the function that takes the sines.
    """
    sines = f"{prefix}_sines"

    def rewritten(found: re.Match[str]) -> str:
        values = read_values(found["body"])
        return found[0] if values is None else found["head"] + body_c(values, sines)

    first = SCALAR_FUNCTION.search(text)
    if first is None:
        return text
    start = _line_of_comment(text, first.start())
    bodies = SCALAR_FUNCTION.sub(rewritten, text[start:])
    if f"{sines}(" in bodies:
        kernels = template("sine_kernels.c.in", {"real": "double"})
        bodies = template("sines.c.in", {"kernels": kernels, "name": sines}) + bodies
    return text[:start] + bodies


def _line_of_comment(text: str, start: int) -> int:
    """Return where the comment begins that names the function at `start`."""
    before = text.rfind("\n", 0, start - 1) + 1
    return before if text.startswith("/*", before) else start


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
            names = VARIABLE.findall(match[2])
            operands = tuple(current[name] for name in names)
            text = VARIABLE.sub(lambda name: f"x{current[name[0]]}", match[2])
            current[match[1]] = values.add(text, operands)
        else:
            return None
    sizes = (*values.inputs.values(), *values.sizes.values())
    return values if values.outputs and max(sizes) <= MOST_UNWANTED else None


def body_c(values: Values, sines: str) -> str:
    """Return the rest of a function after its head: `  return 0;` and the brace included."""
    angles, early = _angles(values)
    lines = _pointers(values)
    if angles:
        n = len(angles)
        lines += [f"double angle[{n}], sine[{n}], cosine[{n}];"]
        for value in early:
            lines += _lines_of(values, value, {})
        lines += [f"angle[{k}]=x{value};" for value, k in angles.items()]
        lines += [f"{sines}(angle, sine, cosine, {n});"]
    done = set(early) if angles else set()
    for value in order_of(values):
        if value not in done:
            lines += _lines_of(values, value, angles)
    return "".join(f"  {line}\n" for line in [*lines, "return 0;"]) + "}\n"


def _pointers(values: Values) -> list[str]:
    """Return the definitions of the pointers to inputs `p` and outputs `r`.

    What a caller does not pass reads as zeros, or is written where nobody reads.
    """
    lines, none_in, none_out = [], "", ""
    if values.checked:
        none_in, none_out = "zeros", "unwanted"
        if values.inputs:
            lines += [f"static const casadi_real zeros[{max(values.inputs.values())}] = {{0}};"]
        lines += [f"casadi_real unwanted[{max(values.sizes.values())}];"]
    for i in sorted(values.inputs):
        chosen = f"arg[{i}] ? arg[{i}] : {none_in}" if none_in else f"arg[{i}]"
        lines += [f"const casadi_real *p{i} = {chosen};"]
    for i in sorted(values.sizes):
        chosen = f"res[{i}] ? res[{i}] : {none_out}" if none_out else f"res[{i}]"
        lines += [f"casadi_real *r{i} = {chosen};"]
    return lines


def _lines_of(values: Values, value: int, angles: dict[int, int]) -> list[str]:
    """Return the definition of a value and where it is written to."""
    text = values.texts[value]
    match = SINE.fullmatch(text)
    if match and int(match[2]) in angles:
        text = f"{'sine' if match[1] == 'sin' else 'cosine'}[{angles[int(match[2])]}]"
    stores = [f"r{i}[{k}]=x{value};" for i, k in values.outputs.get(value, [])]
    return [f"const casadi_real x{value}={text};", *stores]


def _angles(values: Values) -> tuple[dict[int, int], list[int]]:
    """Return the values whose sines are taken in one loop, numbered, and what they are made of.

    They depend on no sine themselves. Both are empty where there are few.
    """
    late = [False] * len(values.texts)
    angles: dict[int, int] = {}
    for value, text in enumerate(values.texts):
        match = SINE.fullmatch(text)
        late[value] = match is not None or any(late[k] for k in values.operands[value])
        if match and not late[int(match[2])]:
            angles.setdefault(int(match[2]), len(angles))
    if len(angles) < LEAST_ANGLES:
        return {}, []
    needed, pending = set[int](), list(angles)
    while pending:
        value = pending.pop()
        if value not in needed:
            needed.add(value)
            pending += values.operands[value]
    return angles, sorted(needed)


def order_of(values: Values) -> list[int]:
    """Return the values that outputs need, each after its operands and near its uses.

    The next output is the one that needs the fewest new values; its operands come depth first,
    the longest one first. So one limb is done after the other, and few values wait.
    """
    if len(values.texts) * len(values.outputs) ** 2 > MOST_EFFORT:
        return _depth_first(values, list(values.outputs), [0] * len(values.texts))
    needs: list[int] = []
    for value, operands in enumerate(values.operands):
        need = 1 << value
        for k in operands:
            need |= needs[k]
        needs.append(need)
    waiting, chosen, done = set(values.outputs), [], 0
    while waiting:
        value = min(waiting, key=lambda v: ((needs[v] & ~done).bit_count(), v))
        waiting.remove(value)
        chosen.append(value)
        done |= needs[value]
    return _depth_first(values, chosen, [need.bit_count() for need in needs])


def _depth_first(values: Values, outputs: list[int], sizes: list[int]) -> list[int]:
    done, order = [False] * len(values.texts), []
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
                operands = sorted(values.operands[value], key=lambda k: sizes[k])
                pending += [(k, False) for k in operands]
    return order
