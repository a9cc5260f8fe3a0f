"""Small functions of CasADi's C runtime, written for compilers to inline and checkers to pass."""

import re

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
DEFINITION = re.compile(
    r"^(?:void|casadi_real) (?P<name>casadi_\w+)\([^;]*?\) \{\n(?:.*\n)*?\}\n", flags=re.MULTILINE
)


def with_inlined_runtime(text: str) -> str:
    """Return CasADi's C with some of its runtime replaced; needs `<string.h>` before the text."""
    return DEFINITION.sub(lambda found: INLINED.get(found["name"], found[0]), text)
