"""Scalar Functions in C for vectors of lanes, a vector in the place of each number."""

import math

import casadi as ca

from mbcasadi.codegen.scalar_text.values import (
    CHOICE,
    DIFFERENCE,
    FORMS,
    FUNCTIONS,
    PRODUCT,
    SINES,
    SUM,
    values_of,
)

INFIX_FORMS = (SUM, DIFFERENCE, PRODUCT, "({}/{})", "(-{})")
NAMED = {
    **{FORMS[ca.OP_LT]: "lt", FORMS[ca.OP_LE]: "le", FORMS[ca.OP_EQ]: "eq", FORMS[ca.OP_NE]: "ne"},
    **{FORMS[ca.OP_AND]: "and", FORMS[ca.OP_OR]: "or", FORMS[ca.OP_NOT]: "not", CHOICE: "if_zero"},
    **{FORMS[ca.OP_TWICE]: "twice", FORMS[ca.OP_INV]: "inv"},
}
"""Operations of scalar functions whose form is no call, with their names for lanes."""

KNOWN = {name for names in FUNCTIONS.values() for name in names} - {"erfinv"}
KNOWN |= {"casadi_fabs", "casadi_sq"}
"""Functions in CasADi's text and in scalar operations that lanes have too."""


def scalar_lanes(function: ca.Function) -> str | None:
    """Return the body of a scalar Function for lanes; None where an operation has no such form.

    The sine and the cosine of one value are one call.
    """
    values = values_of(function, math.inf)
    if values is None:
        return None
    forms = {f: lane_form(f) for f, own in zip(values.forms, values.operands, strict=True) if own}
    if not all(forms.values()):
        return None
    angles = [{values.operands[k][0] for k, f in enumerate(values.forms) if f == s} for s in SINES]
    numbers = {x: k for k, x in enumerate(sorted(set.intersection(*angles)))}
    lines = [f"lanes sine[{len(numbers)}], cosine[{len(numbers)}];"] if numbers else []
    taken = set[int]()
    for value, form in enumerate(values.forms):
        operands = values.operands[value]
        angle = operands[0] if form in SINES and operands[0] in numbers else -1
        if value in values.entries:
            array, entry = values.entries[value]
            text = f"arg[{array[1:]}] ? arg[{array[1:]}][{entry}] : all(0)"
        elif not operands:
            text = f"all({form})"
        elif angle >= 0:
            k = numbers[angle]
            if angle not in taken:
                lines.append(f"lanes_sincos(x{angle}, sine + {k}, cosine + {k});")
                taken.add(angle)
            text = f"{SINES[form]}[{k}]"
        else:
            text = forms[form].format(*(f"x{k}" for k in operands))
        lines.append(f"const lanes x{value}={text};")
        for port, entry in values.outputs.get(value, []):
            lines.append(f"if (res[{port}]) res[{port}][{entry}]=x{value};")
    return "\n".join([*lines, "return 0;"])


def lane_form(form: str) -> str:
    """Return the form of an operation for lanes; "" where it has none."""
    if form in INFIX_FORMS:
        return form
    called = form.partition("(")[0]
    name = NAMED.get(form, called.removeprefix("casadi_"))
    is_known = form in NAMED or called in KNOWN
    return f"lanes_{name}({'{},{}' if form.count('{}') == 2 else '{}'})" if is_known else ""
