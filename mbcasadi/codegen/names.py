"""Names in the generated C."""

from mbcasadi.codegen.reserved_names import FUNCTIONS, KEYWORDS, MACROS, meaning
from mbcasadi.description.c_names import RESERVED, is_c_name
from mbcasadi.errors import ExportError


def parameter(name: str) -> str:
    """Return the C parameter for a CasADi input or output; different ones for different names.

    Macros have capitals: a parameter in capitals, of more than one letter, gets an underscore.
    """
    taken = name in RESERVED or name in KEYWORDS | MACROS | FUNCTIONS
    is_macro = len(name) > 1 and name == name.upper()
    return f"{name}_" if taken or is_macro or name.endswith("_") else name


def require_identifier(name: str) -> str:
    """Return `name`, or raise `ExportError` where C would refuse it."""
    if not is_c_name(name):
        raise ExportError(
            f"{name!r} cannot name a C function; expected a letter, then letters, digits or "
            "underscores, no word of C or of its library: pass another name="
        )
    return name


def require_export_name(name: str) -> str:
    """Return `name`, or raise `ExportError` where an export cannot bear it: `meaning` says why."""
    if words := meaning(require_identifier(name)):
        raise ExportError(f"{name!r} cannot name a C function: it is {words}; pass another name=")
    return name
