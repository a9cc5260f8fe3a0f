"""Names in the generated C."""

import re

from mbcasadi.description.c_names import RESERVED, is_c_name
from mbcasadi.errors import ExportError


def parameter(name: str) -> str:
    """Return the C parameter for a CasADi input or output."""
    return f"{name}_" if name in RESERVED else name


DEVICES = re.compile(r"con|prn|aux|nul|(com|lpt)\d", re.IGNORECASE)
"""Names of devices on Windows, where no file can bear them."""


def require_identifier(name: str) -> str:
    """Return `name`, or raise `ExportError` where C, the linker or a folder would refuse it."""
    if not is_c_name(name) or DEVICES.fullmatch(name):
        raise ExportError(
            f"{name!r} cannot name a C function; expected a letter, then letters, digits or "
            "underscores, no word of C or of its library, no device of Windows: pass another name="
        )
    return name
