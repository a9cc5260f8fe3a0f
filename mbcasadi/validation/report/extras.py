"""Optional packages, named when they are missing."""

import importlib
from types import ModuleType

from mbcasadi.errors import MissingExtraError


def require(module: str, purpose: str) -> ModuleType:
    """Import an optional module.

    Raises:
        MissingExtraError: it is not installed; the message gives the extra.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: pip install 'mbcasadi[tools]'"
        ) from error
