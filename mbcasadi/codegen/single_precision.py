"""The C of CasADi, and loops of ours in it, in single precision.

Every number gets the suffix of a float, every function of `<math.h>` its float form, and the type
is float: nothing is computed in double. A number that double uses as a tolerance is the tolerance
of float (`description.tolerance`). A number that float cannot hold becomes the smallest or largest
one that it can square: it stands for "practically zero" or "practically infinite".
"""

import re

from mbcasadi.codegen.text import number
from mbcasadi.description.tolerance import single_value

FUNCTIONS = (
    "sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|exp|expm1|log|log1p|log10|pow|"
    "sqrt|cbrt|fabs|floor|ceil|fmod|fmin|fmax|hypot|copysign|erf|erfinv|remainder|fma|frexp|ldexp"
)
CALL = re.compile(rf"(?<![\w.])({FUNCTIONS})\(")
NUMBER = re.compile(r"(?<![\w.])((?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])")
TEXT = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/', re.DOTALL)

SMALLEST, LARGEST = 1e-18, 1e18
"""The squares of these are float's."""
LEAST, MOST = 2.0**-126, 3e38
"""Float's normal numbers."""


def in_single_precision(text: str) -> str:
    """Return C of doubles as C of floats; comments and strings stay as they are."""
    parts, end = [], 0
    for found in TEXT.finditer(text):
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
