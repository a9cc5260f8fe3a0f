"""Optional packages: a missing one is an error that names the extra."""

import importlib

from mbcasadi.errors import MissingExtraError


def require(module: str, purpose: str) -> None:
    """Raise unless an optional module can be imported; then `import` it.

    Args:
        module: its name.
        purpose: what requires it, for the message.

    Raises:
        MissingExtraError: it is not installed; the message gives the extra.
    """
    try:
        importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: pip install 'mbcasadi[tools]'"
        ) from error
