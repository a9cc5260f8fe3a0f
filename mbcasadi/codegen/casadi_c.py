"""The C that CasADi generates for a law, and checks of it."""

import re

import casadi as ca

from mbcasadi.codegen.cache.keys import text_key
from mbcasadi.codegen.cache.store import folder, read, write
from mbcasadi.codegen.casadi_text import (
    in_single_precision,
    with_inlined_runtime,
    with_strict_text,
)
from mbcasadi.codegen.loops import with_loops
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.scalar_text.bodies import with_scalar_bodies
from mbcasadi.errors import ExportError

# Headers that CasADi's own runtime includes; anything else is a foreign library.
OWN_HEADERS = frozenset({"math.h", "stdio.h", "stdarg.h", "string.h"})
# Solvers written in CasADi's runtime trace their iterations through this macro: switched off,
# because a control function must not print.
SILENT = "#define CASADI_PRINTF(...) ((void)0)\n"


def generate(
    functions: tuple[ca.Function, ...],
    prefix: str,
    *,
    by_hand: bool = True,
    real: Real = "double",
) -> str:
    """Return one C translation unit with these Functions; internal symbols carry `prefix`.

    The text of the same Functions is taken from the cache.

    Args:
        functions: in one text.
        prefix: of internal symbols.
        by_hand: write scalar functions and matrix operations as one would by hand, where they
            are known; needs `<float.h>` and `<string.h>` before the text.
        real: the C type of all numbers.

    Raises:
        ExportError: a Function has no generated C, or its C needs a foreign library.
    """
    words = (prefix, str(by_hand), real, *(function.name() for function in functions))
    key = text_key(functions, words) if folder() is not None else None
    known = None if key is None else read(key)
    if known is not None:
        return known.decode()
    text = _generate(functions, prefix, by_hand=by_hand, real=real)
    if key is not None:
        write(key, text.encode())
    return text


def _generate(functions: tuple[ca.Function, ...], prefix: str, *, by_hand: bool, real: Real) -> str:
    """Return the text anew."""
    generator = ca.CodeGenerator(f"{prefix}_cg", {"with_header": False})
    for function in functions:
        generator.add(function)
    text = str(generator.dump())
    _refuse(text, functions)
    if by_hand:
        text = with_loops(with_inlined_runtime(text), prefix)
        text = with_scalar_bodies(text, functions, prefix, real)
        text = with_strict_text(text)
    if real == "float":
        text = in_single_precision(text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip()
    if "CASADI_PRINTF" in text:
        text = re.sub(r"#include <stdio\.h>\n", SILENT, text, count=1)
    return f"{text}\n"


def _refuse(text: str, functions: tuple[ca.Function, ...]) -> None:
    """Raise `ExportError` where the text would not compile, allocate, or not link."""
    missing = re.findall(r"#error\s+(.*)", text)
    if missing:
        raise ExportError(
            f"CasADi cannot generate C for a part of {_names(functions)}: {missing[0].strip()}; "
            "replace it by something that has generated C (SX or MX arithmetic, nested "
            "Functions, linear solver 'qr' or 'ldl', QP solver 'qrqp')"
        )
    foreign = sorted(set(re.findall(r'#include\s*[<"]([^>"]+)[>"]', text)) - OWN_HEADERS)
    if foreign:
        raise ExportError(
            f"the C of {_names(functions)} needs {', '.join(foreign)}, a library that allocates "
            "memory in every call; give the controller `stages` around its QP, or use a solver "
            "written in CasADi's own C ('qrqp', 'sqpmethod')"
        )
    external = re.search(r"/\* External functions \*/\s+.*?\b(\w+)\(", text)
    if external:
        raise ExportError(
            f"{_names(functions)} calls the external function {external.group(1)!r}, which "
            "cannot be exported; build the law from the Function that it was compiled from"
        )


def _names(functions: tuple[ca.Function, ...]) -> str:
    return " and ".join(repr(f.name()) for f in functions)
