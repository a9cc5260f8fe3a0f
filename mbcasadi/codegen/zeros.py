"""The zeros that stand for null inputs in CasADi's C: as many as inputs that may be null need.

A horizon's data are in the controller's memory; zeros of their size would be a third of a library.
"""

import re
from math import prod

import casadi as ca

GIVEN = "prepared"
STAGES = ("_build", "_finish")
"""Input of these stages that is never null; a Function alone has callers of its own."""

FUNCTION = re.compile(
    r"/\* (?P<name>\w+):\((?P<inputs>.*?)\)->.*\n(?:static )?int \w+\(.*\) \{\n(?:.*\n)*?\}\n"
)
INPUT = re.compile(r"(?P<name>\w+)(?:\[(?P<size>[^\]]*)\])?")
ZEROS = re.compile(r"(static const casadi_real casadi_zeros\[)\d+(\])")


def with_few_zeros(text: str, functions: tuple[ca.Function, ...]) -> str:
    """Return CasADi's C with zeros for those inputs that may be null."""
    names = {f.name() for f in functions if f.name().endswith(STAGES) and GIVEN in f.name_in()}
    if len(functions) == 1 or not names or not ZEROS.search(text):
        return text
    needed = [1]

    def known(found: re.Match[str]) -> str:
        body = found[0]
        for i, part in enumerate(INPUT.finditer(found["inputs"])):
            null = f"arg[{i}] ? arg[{i}] : casadi_zeros"
            if found["name"] in names and part["name"] == GIVEN:
                body = body.replace(null, f"arg[{i}]")
            elif null in body:
                needed.append(_entries(part["size"] or "1"))
        return body

    text = FUNCTION.sub(known, text)
    return ZEROS.sub(rf"\g<1>{max(needed)}\2", text)


def _entries(size: str) -> int:
    """Return the numbers of an input: of "7", "3x4" or "3x4,5nz"."""
    shape, _, nonzeros = size.partition(",")
    return int(nonzeros.removesuffix("nz")) if nonzeros else prod(map(int, shape.split("x")))
