"""C that does the work of a scalar Function for several sets of numbers, some of them side by side.

Such a Function is known by its name, `description/loops.py`: each input and output is (sets, size),
so that the same entry of all sets stands side by side in memory.
"""

import math

from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.scalar_text.lanes import lane_form
from mbcasadi.codegen.scalar_text.values import Values, order_of, values_of
from mbcasadi.codegen.text import template
from mbcasadi.description.loops import SIDE_BY_SIDE

WIDEST = 8
"""Numbers in a vector at most, floats of AVX: the number of sets is a multiple of it."""

OPERATIONS = {"lt", "le", "if_zero", "not", "twice", "inv", "fabs", "sqrt", "fmax", "fmin"}
"""Those of `packs.c.in` beside the infix ones."""


def packs_c(prefix: str, real: Real) -> str:
    """Return the C of the type and its operations."""
    is_double = real == "double"
    values: dict[str, str | int] = {
        "NAME": prefix.upper(),
        "integer": "long long" if is_double else "int",
        "kind": "d" if is_double else "s",
        "suffix": "d" if is_double else "",
    }
    return template("packs.c.in", values)


def packs_body(name: str) -> str:
    """Return the body of the Function with this name; "" where it is another one.

    Or where an operation has no form for vectors.
    """
    function, sets = SIDE_BY_SIDE.get(name, (None, 0))
    values = None if function is None else values_of(function, math.inf)
    if values is None or sets % WIDEST:
        return ""
    forms = {
        form: pack_form(form)
        for form, own in zip(values.forms, values.operands, strict=True)
        if own
    }
    if not all(forms.values()):
        return ""
    most = sets * max(values.inputs.values())
    lines = [f"static const casadi_real zeros[{most}] = {{0}};"]
    lines += [f"casadi_real unwanted[{sets * max(values.sizes.values())}];"]
    lines += [
        f"const casadi_real *p{i} = arg[{i}] ? arg[{i}] : zeros;" for i in sorted(values.inputs)
    ]
    lines += [f"casadi_real *r{i} = res[{i}] ? res[{i}] : unwanted;" for i in sorted(values.sizes)]
    lines += [f"for (int i = 0; i < {sets}; i += PACK) {{"]
    for value in order_of(values.operands, [*values.outputs]):
        lines += [f"  const pack x{value}={_text(values, forms, value, sets)};"]
        for port, entry in values.outputs.get(value, []):
            lines += [f"  PACK_AT(r{port}, {sets * entry} + i)=x{value};"]
    return "".join(f"  {line}\n" for line in [*lines, "}", "return 0;"]) + "}\n"


def pack_form(form: str) -> str:
    """Return the form of an operation for vectors; "" where it has none."""
    found = lane_form(form)
    name, call, _ = found.partition("(")
    if call and name:
        name = name.removeprefix("lanes_")
        return f"pack_{found.removeprefix('lanes_')}" if name in OPERATIONS else ""
    return found


def _text(values: Values, forms: dict[str, str], value: int, sets: int) -> str:
    """Return the right-hand side of a value."""
    if value in values.entries:
        array, entry = values.entries[value]
        return f"PACK_OF({array}, {sets * entry} + i)"
    if values.is_constant(value):
        return f"PACK_ALL({values.forms[value]})"
    return forms[values.forms[value]].format(*(f"x{k}" for k in values.operands[value]))
