"""Tables of a file that are dataclasses of ours: their fields are the keys, with their own docs.

`Annotated[JointLimits, TABLE]` is a field of a table that holds a `JointLimits`. What the dataclass
itself refuses is an error of the file, with its place. Fields that no file can hold, such as
Functions, are no keys.
"""

import inspect
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal

from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic_core import core_schema

from mbcasadi.annotations import hints_of, parts_of

Numbers = float | tuple[float, ...] | tuple[tuple[float, ...], ...]
PLAIN = (float, int, bool, str, type(None))


class StrictTable(BaseModel):
    """A table of the file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Table:
    """An annotation: the table has the fields of the dataclass that it annotates."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Return the schema of the table, whose values make the dataclass."""

        def made(table: BaseModel) -> object:
            return source(**{name: getattr(table, name) for name in table.model_fields_set})

        schema: core_schema.CoreSchema = handler.generate_schema(table_of(source))
        return core_schema.no_info_after_validator_function(made, schema)


TABLE = Table()


class OneOf:
    """An annotation: the table has the fields of one of several dataclasses, and its `type`.

    Attributes:
        kinds: the dataclasses, by `type`.
    """

    def __init__(self, kinds: Mapping[str, type]) -> None:
        self.kinds = kinds

    def __get_pydantic_core_schema__(self, _: Any, handler: Any) -> core_schema.CoreSchema:
        """Return the schema of the tables, whose values make a dataclass."""

        def made(name: str, kind: type) -> core_schema.CoreSchema:
            tagged: Any = create_model
            table = tagged(kind.__name__, __base__=table_of(kind), type=(Literal[name], ...))

            def build(values: BaseModel) -> object:
                own = values.model_fields_set - {"type"}
                return kind(**{each: getattr(values, each) for each in own})

            schema = handler.generate_schema(table)
            return core_schema.no_info_after_validator_function(build, schema)

        choices: dict[Any, core_schema.CoreSchema] = {
            name: made(name, kind) for name, kind in self.kinds.items()
        }
        return core_schema.tagged_union_schema(choices, discriminator="type")


def by_type(package: object, base: type) -> dict[str, type]:
    """Return the public dataclasses of a package that have a base, by their name in a file."""
    kinds = [each for each in vars(package).values() if inspect.isclass(each)]
    kinds = [each for each in kinds if issubclass(each, base) and is_dataclass(each)]
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", each.__name__).lower(): each for each in kinds}


@cache
def table_of(kind: Any) -> type[StrictTable]:
    """Return the table with the fields of a dataclass; required are those without a default."""
    hints, docs = hints_of(kind), docs_of(kind)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        value = value_in_file(hints[name])
        if value is None:
            continue
        required = parameter.default is parameter.empty
        default = parameter.default if isinstance(parameter.default, PLAIN) else None
        described = Field(... if required else default, description=docs.get(name))
        fields[name] = (value, described)
    table: Any = create_model  # its overloads know no computed fields
    summary = inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]
    made: type[StrictTable] = table(kind.__name__, __base__=StrictTable, __doc__=summary, **fields)
    return made


def value_in_file(hint: Any) -> Any:
    """Return what a file holds for an annotation; None where it can hold nothing of it."""
    parts = [each for part in parts_of(hint) if (each := _part_in_file(part)) is not None]
    return reduce(or_, parts) if set(parts) - {type(None)} else None


def _part_in_file(hint: Any) -> Any:
    origin, items = typing.get_origin(hint), typing.get_args(hint)
    if hint is ArrayLike:
        return Numbers
    if hint in PLAIN or origin is Literal:
        return hint
    if is_dataclass(hint):
        return Annotated[hint, TABLE]
    if origin is tuple and Ellipsis not in items:
        return tuple[tuple(map(value_in_file, items))]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, value_in_file(items[1])]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return tuple[value_in_file(items[0]), ...]  # type: ignore[misc]
    return None


def docs_of(kind: Any) -> dict[str, str]:
    """Return what a docstring says of each argument or attribute."""
    docs: dict[str, str] = {}
    names: list[str] = []
    for line in inspect.cleandoc(kind.__doc__ or "").splitlines():
        entry = re.match(r" {4}(\w+(?:, \w+)*): (.*)", line)
        if entry:
            names = entry[1].split(", ")
            docs |= dict.fromkeys(names, entry[2])
        elif not line.startswith(" " * 8):
            names = []
        for name in () if entry else names:
            docs[name] += f" {line.strip()}"
    return docs
