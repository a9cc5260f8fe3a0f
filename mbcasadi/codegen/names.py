"""Valid names in C, C++ and the generated code."""

import re

from mbcasadi.errors import ExportError

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
evaluate safe_output status_code preparation unprepared run_tick KNOWN
NX ACTIVE LOWER IMMUTABLE SOFT BINARY N_CONSTR N_SIMPLE SQUARE ARSUM
"""
RESERVED = frozenset(RESERVED_WORDS.split())


def parameter(name: str) -> str:
    """Return the C parameter for a CasADi input or output."""
    return f"{name}_" if name in RESERVED else name


def require_identifier(name: str) -> str:
    """Return `name`, or raise `ExportError` where C or the linker would refuse it."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in RESERVED:
        raise ExportError(
            f"{name!r} cannot name a C function; expected a letter, then letters, digits or "
            "underscores, and no word of C or of its library: pass another name="
        )
    return name
