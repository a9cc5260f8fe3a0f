"""Which names are valid in the generated C."""

import re

# Words that do not compile as a name in C or C++, would replace a symbol that the generated
# code calls, or are used in it already.
RESERVED_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union unsigned
void volatile while bool catch class delete false friend mutable namespace new operator private
protected public template this throw true try typename using virtual main
abs sin cos tan asin acos atan atan2 sinh cosh tanh exp log sqrt pow fabs floor ceil fmin fmax
hypot erf memset memcpy malloc free casadi_int casadi_real c_float
memory in out m p tick_ code_ status_value NAN INFINITY
evaluate safe_output broken completed interrupting uninitialised unprepared is_finite is_ready
preparation is_prepared run_tick KNOWN INT_MAX
NX ACTIVE LOWER IMMUTABLE SOFT BINARY N_CONSTR N_SIMPLE SQUARE ARSUM
"""
RESERVED = frozenset(RESERVED_WORDS.split())


def is_c_name(name: object) -> bool:
    """Return whether `name` can be the name of a C function: letters, digits, underscores."""
    valid = isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None
    return valid and name not in RESERVED
