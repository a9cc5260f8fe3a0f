"""Scalar functions of CasADi's C, written as by hand.

CasADi writes one operation in a line, on variables that it uses again, checks every input and
output for being wanted, and calls the C library for each sine. Here each value has a name of its
own and stands near its use, each pointer is checked once, the sines and cosines of the inputs
are taken together in a loop that compilers turn into vectors, and equal parts, the limbs of one
design for example, are one loop. The operations are the same, so the results are, but for the last
bits of sines and cosines, and of the products that a compiler joins with a sum.
"""

import re

from mbcasadi.codegen.equal_parts import EqualParts, equal_parts
from mbcasadi.codegen.equal_parts_c import CHOOSE, PartsLoop
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.scalar_values import Values, order_of, read_values
from mbcasadi.codegen.sine_values import with_sines
from mbcasadi.codegen.text import template

SCALAR_FUNCTION = re.compile(
    r"(?P<head>static int casadi_f\d+\([^\n]*\) \{\n)(?P<body>(?:  [^\n]*;\n)*?)  return 0;\n\}\n"
)

SINES = "_sines"
"""End of the name of the function that takes them."""


def with_scalar_bodies(text: str, prefix: str, real: Real = "double") -> str:
    """Return CasADi's C with its scalar functions rewritten.

    Args:
        text: of `casadi_c.generate`; the includes before it have `<float.h>` and `<string.h>`.
        prefix: of the names of functions that are added.
        real: the C type of the numbers in the end.
    """

    def rewritten(found: re.Match[str]) -> str:
        values = read_values(found["body"])
        return found[0] if values is None else found["head"] + body_c(values, prefix)

    first = SCALAR_FUNCTION.search(text)
    if first is None:
        return text
    start = _line_of_comment(text, first.start())
    bodies = SCALAR_FUNCTION.sub(rewritten, text[start:])
    if f"{prefix}{CHOOSE}(" in bodies:
        bits = "long long" if real == "double" else "int"
        values = {"name": f"{prefix}{CHOOSE}", "bits": bits}
        bodies = template("value_if.c.in", values) + bodies
    if f"{prefix}{SINES}(" in bodies:
        bodies = _sines(f"{prefix}{SINES}", real) + bodies
    return text[:start] + bodies


def _sines(name: str, real: Real) -> str:
    """Return the C that takes sines and cosines."""
    if real == "float":
        return template("sines_of_floats.c.in", {"name": name})
    kernels = template("sine_kernels.c.in", {"real": "double"})
    return template("sines.c.in", {"kernels": kernels, "name": name})


def _line_of_comment(text: str, start: int) -> int:
    """Return where the comment begins that names the function at `start`."""
    before = text.rfind("\n", 0, start - 1) + 1
    return before if text.startswith("/*", before) else start


def body_c(values: Values, prefix: str) -> str:
    """Return the rest of a function after its head: `  return 0;` and the brace included."""
    values = with_sines(values, f"{prefix}{SINES}")
    parts = equal_parts(values)
    lines = [*_pointers(values), *_lines_in_order(values, parts, prefix), "return 0;"]
    return "".join(f"  {line}\n" for line in lines) + "}\n"


def _lines_in_order(values: Values, parts: list[EqualParts], prefix: str) -> list[str]:
    """Return the lines of all values, equal parts as one loop each."""
    first = len(values.texts)
    loop_of = {value: first + k for k, part in enumerate(parts) for value in part.values}
    leaving = {
        k
        for value, own in enumerate(values.operands)
        for k in own
        if loop_of.get(k) != loop_of.get(value)
    }
    loops: list[PartsLoop] = []
    for k, part in enumerate(parts):
        loops.append(PartsLoop(k, part, values, leaving, prefix, tuple(loops)))
    operands = [
        (loop_of[value],) if value in loop_of else own for value, own in enumerate(values.operands)
    ]
    operands += [loop.needed for loop in loops]
    outputs = [value for value in values.outputs if value not in loop_of]
    lines: list[str] = []
    for value in order_of(operands, [*outputs, *range(first, first + len(loops))]):
        if value >= first:
            lines += loops[value - first].c_lines()
        elif value in loop_of:
            text = loops[loop_of[value] - first].text_of(value)
            lines += [f"const casadi_real x{value}={text};"]
        else:
            lines += _lines_of(values, value)
    return lines


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


def _lines_of(values: Values, value: int) -> list[str]:
    """Return the definition of a value and where it is written to."""
    stores = [f"r{i}[{k}]=x{value};" for i, k in values.outputs.get(value, [])]
    definition = [f"const casadi_real x{value}={values.texts[value]};"]
    return values.steps.get(value, definition) + stores
