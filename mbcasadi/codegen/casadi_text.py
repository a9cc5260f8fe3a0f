"""The text that CasADi generates, as compilers and checkers want it; the operations are the same.

Its runtime is written for compilers to inline. Conditions are comparisons, not numbers; sizes of
memory are unsigned; parameters that a function does not use say so.

In single precision every number gets the suffix of a float, every function of `<math.h>` its float
form, and the type is float: nothing is computed in double. A number that double uses as a tolerance
is the tolerance of float (`description.tolerance`). A number that float cannot hold becomes the
smallest or largest one that it can square: it stands for "practically zero" or "practically
infinite".
"""

import re

from mbcasadi.codegen.text import number
from mbcasadi.description.tolerance import single_value

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
    used = set(re.findall(r"\w+", found["body"]))
    unused = [name for name in names if name not in used and name != "void"]
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
