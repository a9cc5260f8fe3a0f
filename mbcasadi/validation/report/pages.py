"""What self-contained pages and data files of reports need: templates, optional packages, JSON."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mbcasadi.errors import ProblemError
from mbcasadi.extras import optional_module
from mbcasadi.text_files import write_whole

if TYPE_CHECKING:
    from jinja2 import Template


def save_page(
    path: str | Path, what: str, as_json: Callable[[], str], as_html: Callable[[], str]
) -> Path:
    """Write `.json` or `.html`, by the suffix; return the path.

    Raises:
        ProblemError: a file that cannot be written, or another suffix.
    """
    target = Path(path)
    if target.suffix not in {".json", ".html"}:
        raise ProblemError(f"{target}: {what} is saved as .json or .html")
    return write_whole(target, as_json() if target.suffix == ".json" else as_html())


def json_text(data: Mapping[str, object]) -> str:
    """Return data as the text of a JSON file; NaN and infinity become null."""
    return json.dumps(plain_data(data), indent=2, allow_nan=False) + "\n"


def page_template(name: str, **functions: object) -> "Template":
    """Return a template that escapes what it is given and raises where a name is missing.

    Args:
        name: file among the report's and the campaign's templates.
        functions: what the template may call.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    jinja2 = optional_module("jinja2", "tools", "an HTML report")
    packages = ("mbcasadi.validation.report", "mbcasadi.validation.campaigns")
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(functions)
    template: Template = environment.get_template(name)
    return template


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
