"""What self-contained pages and data files of reports need: templates, optional packages, JSON."""

import importlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mbcasadi.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Template


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


def page_template(name: str, **functions: object) -> "Template":
    """Return a template that escapes what it is given and raises where a name is missing.

    Args:
        name: file among the report's and the campaign's templates.
        functions: what the template may call.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    require("jinja2", "an HTML report")
    import jinja2

    packages = ("mbcasadi.validation.report", "mbcasadi.validation.campaigns")
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(functions)
    return environment.get_template(name)


Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""What JSON can hold."""


def plain_data(data: Mapping[str, object]) -> dict[str, Plain]:
    """Return `data` in the types of JSON; NaN and infinity become None."""
    return {str(key): _plain_value(value) for key, value in data.items()}


def _plain_value(value: object) -> Plain:
    if isinstance(value, Mapping):
        return plain_data(value)
    if isinstance(value, list | tuple):
        return [_plain_value(element) for element in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain_value(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"cannot write a {type(value).__name__} as JSON")
