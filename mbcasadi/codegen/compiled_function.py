"""A Function as compiled C, for callers that only want it to be fast."""

import hashlib
from functools import cache
from pathlib import Path

import casadi as ca

from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.compiler import compile_c, find_compiler, native_flags, process_folder
from mbcasadi.codegen.controller import HIDDEN, VISIBLE
from mbcasadi.codegen.count import largest_body
from mbcasadi.codegen.manifest import COMPILER_CLIFF
from mbcasadi.platforms import library_name, platform_of

INTERFACE = """\
#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__GNUC__) && !defined(_WIN32)
#define CASADI_SYMBOL_EXPORT __attribute__((visibility("default")))
#endif
"""


def compiled_function(function: ca.Function) -> ca.Function:
    """Return the same Function as compiled C, in a temporary folder of this process.

    The C does the operations of the Function, without fused ones, so the results are those of
    CasADi's own evaluation up to the last bits of elementary functions. The same C is
    compiled once in a process.

    Raises:
        CompilerError: there is no compiler, or it failed.
        ExportError: a part has no generated C, or needs a foreign library.
    """
    name = function.name()
    text = function_c(function)
    level = "-O1" if largest_body(function) > COMPILER_CLIFF else "-O2"
    cc = find_compiler()
    return ca.external(name, str(_library(text, (*cc, "-std=c99", level, *native_flags(cc)))))


def function_c(function: ca.Function) -> str:
    """Return the C of a Function as one text, for `casadi.external`.

    Raises:
        ExportError: as `compiled_function`.
    """
    return INTERFACE + HIDDEN + generate((function,), function.name()) + VISIBLE


@cache
def _library(text: str, command: tuple[str, ...]) -> Path:
    """Compile a text; the library stays until the process ends."""
    key = hashlib.sha256("\0".join((text, *command)).encode()).hexdigest()[:12]
    source = process_folder() / f"{key}.c"
    source.write_text(text, encoding="utf-8")
    here = platform_of()
    full = (*command, *here.shared, str(source), *here.mathematics)
    return compile_c(full, process_folder() / library_name(key)).path
