"""From a TOML file to the tables of one type of controller, and the JSON schema of them all."""

import tomllib
from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.folder import MANIFEST
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.unknown_names import unknown_name
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.kinds import TYPES, table_of_type
from mbcasadi.validation.spec.plugins import plugin_types
from mbcasadi.validation.spec.wrong_values import error_text, line_of, syntax_text


@checked
def read_spec(path: str | Path, *, allow_code: bool = False) -> Spec:
    """Read a controller's TOML file.

    Args:
        path: of the file.
        allow_code: accept `type = "own"`, which runs Python code that the file names.

    Raises:
        ProblemError: no such file, not TOML, or a wrong value; the message names the file, the
            lines and the wrong keys. Code that is not allowed.
        UnknownNameError: an unknown type, or an unknown key; the message lists the valid ones.
    """
    path = Path(path)
    if path.is_dir():
        raise ProblemError(_of_folder(path))
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except OSError as error:
        raise ProblemError(f"cannot read the controller {path}: {error.strerror}") from error
    except ValueError as error:  # TOML, UTF-8, an integer of more digits than Python reads
        raise ProblemError(f"{path} is not TOML: {syntax_text(error, text)}") from error
    except RecursionError as error:
        raise ProblemError(
            f"{path} nests its values too deeply to be read; expected the tables and lists of a "
            "controller, at most a few levels deep"
        ) from error
    if tables.get("type") == "own":
        tables = {"folder": str(path.absolute().parent)} | tables
    return _parse(tables, str(path), text, allow_code=allow_code)


def _of_folder(path: Path) -> str:
    """Return what to say of a folder in the place of a file."""
    if (path / MANIFEST).is_file():
        return (
            f"{path} is an exported folder; expected the TOML file that it was made from; in "
            f"Python mb.validate({str(path)!r}, MODEL, DURATION, reference=...) runs the folder's C"
        )
    return f"{path} is a folder; expected the TOML file of a controller"


@checked
def parse_spec(
    tables: Mapping[str, object], origin: str = "spec", *, allow_code: bool = False
) -> Spec:
    """Return the tables of a file as a `Spec`; `origin` names them in messages.

    Raises:
        ProblemError, UnknownNameError: as `read_spec`.
    """
    return _parse(tables, origin, "", allow_code=allow_code)


def _parse(tables: Mapping[str, object], origin: str, text: str, *, allow_code: bool) -> Spec:
    """Return the tables of a file, whose text gives messages the numbers of lines."""
    kind: Any = tables.get("type")
    if kind is None:
        valid = ", ".join(map(repr, all_types()))
        raise ProblemError(f"{origin}: type is missing; expected one of {valid}")
    table = table_of_type(kind) if isinstance(kind, str) else None
    if table is None:
        number = line_of(("type",), text)
        place = origin if number is None else f"{origin}: line {number}"
        raise UnknownNameError(f"{place}: {unknown_name('type of controller', kind, all_types())}")
    if kind == "own" and not allow_code:
        raise ProblemError(
            f'{origin}: type = "own" runs Python code, {tables.get("make")!r}; if you trust it, '
            "allow it: --allow-code, or read_spec(..., allow_code=True)"
        )
    try:
        spec: Spec = table.model_validate(tables)
    except ValidationError as error:
        raise ProblemError(f"{origin}: {error_text(error, tables, text)}") from error
    return spec


def all_types() -> list[str]:
    """Return the types of controllers, those of packages first."""
    return [*plugin_types(), *TYPES]


def json_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a controller's TOML file, without plugins."""
    every: Any = reduce(or_, map(table_of_type, TYPES))
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[every, Field(discriminator="type")])
    heading = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Controller of mbcasadi",
    }
    return heading | adapter.json_schema()
