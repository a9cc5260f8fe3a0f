"""The C that CasADi generates for a law, and checks of it."""

import re

import casadi as ca

from mbcasadi.codegen.cache.keys import text_key
from mbcasadi.codegen.cache.store import folder, read, write
from mbcasadi.codegen.equal_functions import with_equal_functions_once
from mbcasadi.codegen.loops import with_loops
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.scalar_text.bodies import with_scalar_bodies
from mbcasadi.codegen.text import number
from mbcasadi.codegen.work_memory import with_small_work
from mbcasadi.codegen.zeros import with_few_zeros
from mbcasadi.description.tolerance import single_value
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
    generator = ca.CodeGenerator(f"{prefix}_cg", {"with_header": False, "verbose": False})
    for function in functions:
        generator.add(function)
    text = str(generator.dump())
    _refuse(text, functions)
    text = with_equal_functions_once(text)
    if by_hand:
        text = with_loops(with_inlined_runtime(text), prefix)
        text = with_scalar_bodies(text, functions, prefix, real)
        text = with_strict_text(with_small_work(text, functions))
    text = with_few_zeros(text, functions)
    if real == "float":
        text = in_single_precision(text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip()
    if "CASADI_PRINTF" in text:
        text = re.sub(r"#include <stdio\.h>\n", SILENT, text, count=1)
    return f"{with_rare_failures(text) if by_hand else text}\n"


def with_rare_failures(text: str) -> str:
    """Return CasADi's C with calls that fail marked as rare.

    Compilers take each `if (f(...)) return 1;` to return in a good part of all cases, so that what
    stands behind many calls counts as cold: it is compiled for size, and its loops stay without
    vectors.
    """
    marked, count = FAILING_CALL.subn(r"if (CASADI_FAILS(\1)) return 1;", text)
    return FAILS + marked if count else text


FAILING_CALL = re.compile(r"if \((casadi_f\d+\([^;\n]*\))\) return 1;")
FAILS = """\
#ifndef CASADI_FAILS
#if defined(__GNUC__)
#define CASADI_FAILS(code) __builtin_expect((code) != 0, 0)
#else
#define CASADI_FAILS(code) (code)
#endif
#endif
"""


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


COPY = """\
void casadi_copy(const casadi_real* x, casadi_int n, casadi_real* y) {
  if (!y) return;
  if (x) memcpy(y, x, n * sizeof *y);
  else memset(y, 0, n * sizeof *y);
}
"""
CLEAR = """\
void casadi_clear(casadi_real* x, casadi_int n) {
  if (x) memset(x, 0, n * sizeof *x);
}
"""
FILL = """\
void casadi_fill(casadi_real* x, casadi_int n, casadi_real alpha) {
  casadi_int i;
  for (i = 0; x && i < n; ++i) x[i] = alpha;
}
"""
FMAX = """\
casadi_real casadi_fmax(casadi_real x, casadi_real y) { return x > y || y != y ? x : y; }
"""
FMIN = """\
casadi_real casadi_fmin(casadi_real x, casadi_real y) { return x < y || y != y ? x : y; }
"""
INLINED = {
    "casadi_clear": CLEAR,
    "casadi_copy": COPY,
    "casadi_fill": FILL,
    "casadi_fmax": FMAX,
    "casadi_fmin": FMIN,
}
RUNTIME = re.compile(
    r"^(?:void|casadi_real) (?P<name>casadi_\w+)\([^;]*?\) \{\n(?:.*\n)*?\}\n", flags=re.MULTILINE
)

OPERAND = r"\w+(?:\[[^\][]*\])?|\(\*\w+\+\+\)|\*\w+\+\+"
NOT = re.compile(rf"\(!\s*({OPERAND})\s*\)")
BOTH = re.compile(rf"\(({OPERAND})(&&|\|\|)({OPERAND})\)")
CHOICE = re.compile(rf"\(({OPERAND})\?")
BYTES = re.compile(r"((?:memcpy|memset)\([^;]*?, )(\w+)( \* sizeof )")
SINGLE = re.compile(
    r"for \(rr=\(&(?P<to>\w+)\), cs=(?P<of>\w+)\+(?P<first>\d+); "
    r"cs!=(?P=of)\+(?P<end>\d+); cs\+=1\) \*rr\+\+ = \*cs;"
)
"""A loop that copies some numbers to a variable: one, where the numbers are scalars."""

FUNCTION = re.compile(
    r"^(?P<head>(?:static )?[\w ]+\*? ?\w+\((?P<parameters>[^;{}()]+)\) ?\{)\n"
    r"(?P<body>(?:.*\n)*?)^\}\n",
    re.MULTILINE,
)
PARAMETER = re.compile(r"(\w+)\s*(?:\[\])?$")

MATHEMATICS = (
    "sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|exp|expm1|log|log1p|log10|pow|"
    "sqrt|cbrt|fabs|floor|ceil|fmod|fmin|fmax|hypot|copysign|erf|erfinv|remainder|fma|frexp|ldexp"
)
CALL = re.compile(rf"(?<![\w.])({MATHEMATICS})\(")
NUMBER = re.compile(r"(?<![\w.])((?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])")
COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/', re.DOTALL)

SMALLEST, LARGEST = 1e-18, 1e18
"""The squares of these are float's."""
LEAST, MOST = 2.0**-126, 3e38
"""Float's normal numbers."""


def with_inlined_runtime(text: str) -> str:
    """Return CasADi's C with some of its runtime replaced; needs `<string.h>` before the text."""
    return RUNTIME.sub(lambda found: INLINED.get(found["name"], found[0]), text)


def with_strict_text(text: str) -> str:
    """Return C of CasADi that compiles without a warning."""
    text = SINGLE.sub(_assignment, text)
    text = NOT.sub(r"(\1==0)", text)
    text = BOTH.sub(r"((\1!=0)\2(\3!=0))", text)
    text = CHOICE.sub(r"(\1!=0?", text)
    text = BYTES.sub(r"\1(size_t)\2\3", text)
    return FUNCTION.sub(_with_used_parameters, text)


def _assignment(found: re.Match[str]) -> str:
    first, end = int(found["first"]), int(found["end"])
    return f"{found['to']} = {found['of']}[{first}];" if end == first + 1 else found[0]


def _with_used_parameters(found: re.Match[str]) -> str:
    names = [
        match[1] for part in found["parameters"].split(",") if (match := PARAMETER.search(part))
    ]
    body = found["body"]
    unused = [
        name
        for name in names
        if name != "void" and not (name in body and re.search(rf"\b{name}\b", body))
    ]
    lines = "".join(f"  (void){name};\n" for name in unused)
    return f"{found['head']}\n{lines}{found['body']}}}\n"


def in_single_precision(text: str) -> str:
    """Return C of doubles, with loops of ours in it, as C of floats; comments and strings stay."""
    parts, end = [], 0
    for found in COMMENT.finditer(text):
        parts += [_code(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, _code(text[end:])])


def _code(text: str) -> str:
    text = re.sub(r"\bdouble\b", "float", text)
    text = CALL.sub(r"\1f(", text)
    return NUMBER.sub(lambda found: single_number(float(found[1])), text)


def single_number(value: float) -> str:
    """Return a number of a double's C as one of float's."""
    value = single_value(value)
    if 0 < value < LEAST:
        value = SMALLEST
    elif value > MOST:
        value = LARGEST
    return number(value, "float")
