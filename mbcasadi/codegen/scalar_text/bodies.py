"""Scalar functions of CasADi's C, written as by hand.

CasADi writes one operation in a line, on variables that it uses again, checks every input and
output for being wanted, and calls the C library for each sine. Here each value has a name of its
own and stands near its use, each pointer is checked once, the sines and cosines of the inputs
are taken together in a loop that compilers turn into vectors, and equal parts, the limbs of one
design for example, are one loop. The operations are the same, so the results are, but for the last
bits of sines and cosines, and of the products that a compiler joins with a sum.
"""

import re

import casadi as ca

from mbcasadi.codegen.cache.keys import part_key
from mbcasadi.codegen.cache.store import folder, read, write
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.scalar_text.equal_parts import EqualParts, equal_parts
from mbcasadi.codegen.scalar_text.loop_of_parts import CHOOSE, PartsLoop
from mbcasadi.codegen.scalar_text.packs import packs_body, packs_c
from mbcasadi.codegen.scalar_text.values import (
    NUMBER,
    SINES,
    Values,
    depth_first,
    of_body,
    order_of,
    scalar_functions,
    values_of,
)
from mbcasadi.codegen.text import template

FUNCTION = re.compile(
    r"(?P<head>/\* (?P<name>\w+)[^\n]*\nstatic int casadi_f\d+\([^\n]*\) \{\n)"
    r"(?P<body>(?:  [^\n]*;\n)*?  return 0;\n\}\n)"
)

MATRICES = re.compile(r"\b(?:w\d*|arg1|res1)\b")
"""In bodies of Functions of matrices, which may have the name of a scalar one."""

KEPT = 64
"""Bodies that are kept in memory, some 100 kB each for the largest."""

OWN_ZEROS = re.compile(r"  static const casadi_real zeros\[(\d+)\] = \{0\};\n")
NOTHING = "_nothing"
"""End of the name of the zeros of all bodies."""

TAKE = "_sines"
"""End of the name of the function that takes them."""
LEAST_ANGLES = 3
"""From so many on a loop over them is shorter than calls of the C library."""


def with_scalar_bodies(
    text: str, functions: tuple[ca.Function, ...], prefix: str, real: Real = "double"
) -> str:
    """Return CasADi's C with its scalar functions rewritten.

    Args:
        text: of `casadi_c.generate`; the includes before it have `<float.h>` and `<string.h>`.
        functions: that it is generated from.
        prefix: of the names of functions that are added.
        real: the C type of the numbers in the end.
    """
    scalar = scalar_functions(functions)

    def rewritten(found: re.Match[str]) -> str:
        if MATRICES.search(found["body"]):
            return found[0]
        if body := packs_body(found["name"]):
            return found["head"] + body
        function = of_body(scalar.get(found["name"], []), found["body"])
        body = "" if function is None else _rewritten_body(found["body"], function, prefix)
        return found["head"] + body if body else found[0]

    first = FUNCTION.search(text)
    if first is None:
        return text
    bodies = FUNCTION.sub(rewritten, text[first.start() :])
    bodies = _with_common_zeros(bodies, prefix)
    if f"{prefix}{CHOOSE}(" in bodies:
        bits = "long long" if real == "double" else "int"
        values = {"name": f"{prefix}{CHOOSE}", "bits": bits}
        bodies = template("value_if.c.in", values) + bodies
    if "PACK_AT(" in bodies:
        bodies = packs_c(prefix, real) + bodies
    if f"{prefix}{TAKE}(" in bodies:
        bodies = _sines(f"{prefix}{TAKE}", real) + bodies
    bodies = f"typedef const casadi_real {NUMBER};\n\n{bodies}"
    return text[: first.start()] + bodies


def _with_common_zeros(text: str, prefix: str) -> str:
    """Return bodies that read zeros of one array where an input is not passed."""
    sizes = [int(found[1]) for found in OWN_ZEROS.finditer(text)]
    if not sizes:
        return text
    name = f"{prefix}{NOTHING}"
    text = OWN_ZEROS.sub("", text).replace(" : zeros;", f" : {name};")
    return f"static const casadi_real {name}[{max(sizes)}] = {{0}};\n\n{text}"


_written: dict[str, str] = {}
"""Bodies by CasADi's text: laws of one mechanism have most of theirs in common."""
ANY = "any_prefix"
"""In the place of the prefix of their names."""
LEAST_CACHED = 50_000
"""Characters of CasADi's text from which on a body is written to the cache: some 0.1 s."""


def _rewritten_body(text: str, function: ca.Function, prefix: str) -> str:
    """Return the body of a scalar function that has this text in CasADi's C; "" to keep that."""
    if text not in _written:
        if len(_written) >= KEPT:
            del _written[next(iter(_written))]
        _written[text] = _cached_body(text, function)
    return _written[text].replace(f"{ANY}_", f"{prefix}_")


def _cached_body(text: str, function: ca.Function) -> str:
    """Return the body from the cache, where a long one is kept for other laws and processes."""
    key = part_key(text) if len(text) >= LEAST_CACHED and folder() is not None else None
    known = None if key is None else read(key)
    if known is not None:
        return known.decode()
    values = values_of(function)
    body = "" if values is None else body_c(values, ANY)
    if key is not None:
        write(key, body.encode())
    return body


def _sines(name: str, real: Real) -> str:
    """Return the C that takes sines and cosines."""
    if real == "float":
        return template("sines_of_floats.c.in", {"name": name})
    kernels = template("sine_kernels.c.in", {"real": "double"})
    return template("sines.c.in", {"kernels": kernels, "name": name})


def body_c(values: Values, prefix: str) -> str:
    """Return the rest of a function after its head: `  return 0;` and the brace included."""
    values = with_sines(values, f"{prefix}{TAKE}")
    parts = equal_parts(values)
    lines = [*_pointers(values), *_lines_in_order(values, parts, prefix), "return 0;"]
    return "".join(f"  {line}\n" for line in lines) + "}\n"


def _lines_in_order(values: Values, parts: list[EqualParts], prefix: str) -> list[str]:
    """Return the lines of all values, equal parts as one loop each."""
    first = len(values.forms)
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
            lines += [f"{NUMBER} x{value}={text};"]
        else:
            lines += _lines_of(values, value)
    return lines


def _pointers(values: Values) -> list[str]:
    """Return the definitions of the pointers to inputs `p` and outputs `r`.

    What a caller does not pass reads as zeros, or is written where nobody reads.
    """
    lines = []
    if values.inputs:
        lines += [f"static const casadi_real zeros[{max(values.inputs.values())}] = {{0}};"]
    lines += [f"casadi_real unwanted[{max(values.sizes.values())}];"]
    lines += [
        f"const casadi_real *p{i} = arg[{i}] ? arg[{i}] : zeros;" for i in sorted(values.inputs)
    ]
    return lines + [
        f"casadi_real *r{i} = res[{i}] ? res[{i}] : unwanted;" for i in sorted(values.sizes)
    ]


def _lines_of(values: Values, value: int) -> list[str]:
    """Return the definition of a value and where it is written to."""
    stores = [f"r{i}[{k}]=x{value};" for i, k in values.outputs.get(value, [])]
    definition = [f"{NUMBER} x{value}={values.text(value)};"]
    return values.steps.get(value, definition) + stores


def with_sines(values: Values, name: str) -> Values:
    """Return the values with one step for all sines of what depends on no sine itself.

    Values keep their meaning, not their numbers. Where there are few sines, all stays as it is.

    Args:
        values: of a function; they have no step yet.
        name: of the C function that takes the sines.
    """
    angles = _angles(values)
    if len(angles) < LEAST_ANGLES:
        return values
    step = len(values.forms)
    operands = [*values.operands, tuple(angles)]
    entries = dict(values.entries)
    for value, form in enumerate(values.forms):
        if form in SINES and operands[value][0] in angles:
            entries[value] = SINES[form], angles[operands[value][0]]
            operands[value] = (step,)
    joined, number = Values(inputs=values.inputs, sizes=values.sizes), dict[int, int]()
    for value in depth_first(operands, range(len(operands)), [0] * len(operands)):
        own = tuple(number[k] for k in operands[value])
        if value in entries:
            number[value] = joined.add_entry(*entries[value], own)
        else:
            number[value] = joined.add(name if value == step else values.forms[value], own)
    joined.outputs = {number[value]: places for value, places in values.outputs.items()}
    n = len(angles)
    joined.steps[number[step]] = [
        f"casadi_real angle[{n}], sine[{n}], cosine[{n}];",
        *(f"angle[{k}]=x{number[value]};" for k, value in enumerate(angles)),
        f"{name}(angle, sine, cosine, {n});",
    ]
    return joined


def _angles(values: Values) -> dict[int, int]:
    """Return the values whose sines are taken that depend on no sine themselves, numbered."""
    late = [False] * len(values.forms)
    angles: dict[int, int] = {}
    for value, form in enumerate(values.forms):
        late[value] = form in SINES or any(late[k] for k in values.operands[value])
        if form in SINES and not late[values.operands[value][0]]:
            angles.setdefault(values.operands[value][0], len(angles))
    return angles
