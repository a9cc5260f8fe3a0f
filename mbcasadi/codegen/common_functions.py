"""Functions of several laws of one export in one text: what they have in common is there once."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from mbcasadi.codegen.casadi_c import generate

DEFINITION = re.compile(
    r"^(?:[A-Za-z]\w*[ *]+)+(?P<name>\w+)\([^;{}()]*\) ?\{\n(?:.*\n)*?\}\n", re.MULTILINE
)
"""A function in C; the brace that ends it stands at the beginning of a line."""

TYPES = """\
#ifndef casadi_real
#define casadi_real double
#endif
#ifndef casadi_int
#define casadi_int long long int
#endif
"""
PARAMETERS = "const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem"


@dataclass(frozen=True)
class CommonFunctions:
    """The Functions of several laws.

    Attributes:
        name: of the file, and prefix of internal symbols.
        functions: of all laws.
    """

    name: str
    functions: tuple[ca.Function, ...]

    @cached_property
    def text(self) -> str:
        """The C of CasADi."""
        return generate(self.functions, self.name)

    @cached_property
    def _definitions(self) -> dict[str, str]:
        return {found["name"]: found[0] for found in DEFINITION.finditer(self.text)}

    def reached(self, functions: Iterable[ca.Function]) -> str:
        """Return the C of what some of the Functions execute."""
        waiting, done = [function.name() for function in functions], dict[str, str]()
        while waiting:
            name = waiting.pop()
            if name in done or name not in self._definitions:
                continue
            done[name] = self._definitions[name]
            waiting += re.findall(r"\b(\w+)\(", done[name])
        return "".join(done.values())


def declarations(functions: Iterable[ca.Function]) -> str:
    """Return the C that declares Functions of another file."""
    lines = [f"int {function.name()}({PARAMETERS});\n" for function in functions]
    return TYPES + "".join(lines)
