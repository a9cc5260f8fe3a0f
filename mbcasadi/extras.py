"""Optional packages: one error for all of them, which names the extra that installs them."""

import importlib
import importlib.util
from typing import Any

from mbcasadi.errors import MissingExtraError


def require_extra(extra: str, purpose: str, *packages: str) -> None:
    """Raise unless packages are installed; nothing is imported. For checks before long work.

    Args:
        extra: of our package, that installs them.
        purpose: what needs them, for the message.
        packages: names of top-level modules.

    Raises:
        MissingExtraError: one is not installed; the message has the command that installs it.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise _missing(extra, purpose, *missing)


def optional_module(module: str, extra: str, purpose: str, instead: str = "") -> Any:
    """Return an optional module.

    Args:
        module: its name.
        extra: of our package, that installs it.
        purpose: what needs it, for the message.
        instead: what works without it, for the end of the message.

    Raises:
        MissingExtraError: it cannot be imported; the message has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing(extra, purpose, module.split(".")[0], instead=instead) from error


def _missing(extra: str, purpose: str, *packages: str, instead: str = "") -> MissingExtraError:
    verb = "is" if len(packages) == 1 else "are"
    return MissingExtraError(
        f"{purpose} needs {' and '.join(packages)}, which {verb} not installed: "
        f'pip install "mbcasadi[{extra}]"{instead}'
    )
