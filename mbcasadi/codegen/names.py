"""Names in the generated C."""

from mbcasadi.description.c_names import RESERVED, is_c_name
from mbcasadi.errors import ExportError


def parameter(name: str) -> str:
    """Return the C parameter for a CasADi input or output."""
    return f"{name}_" if name in RESERVED else name


def require_identifier(name: str) -> str:
    """Return `name`, or raise `ExportError` where C or the linker would refuse it."""
    if not is_c_name(name):
        raise ExportError(
            f"{name!r} cannot name a C function; expected a letter, then letters, digits or "
            "underscores, and no word of C or of its library: pass another name="
        )
    return name
