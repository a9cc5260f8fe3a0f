"""Tables of a file from dataclasses and signatures.

The fields of a dataclass, or the arguments of a function, are the keys of its table, with their
own types, defaults and docs. `Annotated[JointLimits, TABLE]` is a field of a table that holds a
`JointLimits`. What the dataclass itself refuses is an error of the file, with its place. What no
file can hold, such as a Function, is no key.
"""

import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, reduce
from operator import or_
from types import ModuleType
from typing import Annotated, Any, Literal, TypeVar

from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
from pydantic_core import PydanticKnownError, core_schema

from mbcasadi.annotations import documented, hints_of, parts_of
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.validation.spec.plugins import broken, find_plugin, load_plugin, plugin_names
from mbcasadi.validation.spec.wrong_values import UnknownKeyError

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Names = tuple[str, ...]
Numbers = float | tuple[float, ...] | tuple[tuple[float, ...], ...]
Range = tuple[float, float]
T = TypeVar("T", bound="StrictTable")
PLAIN = (float, int, bool, str, type(None))


class StrictTable(BaseModel):
    """A table of the file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _require_known_keys(cls, values: Any) -> Any:
        """Raise before a value is read: a misspelt key often causes other errors."""
        for key in values if isinstance(values, Mapping) else ():
            if key not in cls.model_fields:
                raise UnknownKeyError(key, sorted(cls.model_fields))
        return values

    @property
    def given(self) -> dict[str, Any]:
        """The values of the file, without those that have their default."""
        values = {name: getattr(self, name) for name in self.model_fields_set - {"type"}}
        return {name: value for name, value in values.items() if value is not None}


class Table:
    """An annotation: the table has the fields of the dataclass that it annotates, or other ones.

    Attributes:
        make: (values of the file by name) → what the table stands for; the dataclass by default.
        fields: as in `create_model`, in place of those of the dataclass.
    """

    def __init__(self, make: Callable[..., object] | None = None, **fields: Any) -> None:
        self.make, self.fields = make, fields

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Return the schema of the table, whose values make what it stands for."""
        named = new_table(source.__name__, StrictTable, **self.fields) if self.fields else None
        return made_of(named or table_of(source), self.make or source, handler)


TABLE = Table()


class OneOf:
    """An annotation: the table has the fields of one of several dataclasses, and its `type`.

    Attributes:
        kinds: the dataclasses, by `type`.
        more: further keys of all tables, as in `create_model`.
        make: (dataclass, values of the table by name) → what the table stands for.
        plugins: group of entry points of further dataclasses, and their base; None for no others.
    """

    def __init__(
        self,
        kinds: Mapping[str, type],
        *,
        make: Callable[..., object] = lambda kind, /, **values: kind(**values),
        plugins: tuple[str, type] | None = None,
        **more: Any,
    ) -> None:
        self.kinds, self.make, self.more, self.plugins = kinds, make, more, plugins

    def __get_pydantic_core_schema__(self, _: Any, handler: Any) -> core_schema.CoreSchema:
        """Return the schema of the tables, whose values make a dataclass."""

        def made(name: str, kind: type) -> core_schema.CoreSchema:
            table = self._table(name, kind)
            return made_of(table, lambda **values: self.make(kind, **values), handler)

        choices: dict[Any, core_schema.CoreSchema] = {
            name: made(name, kind) for name, kind in self.kinds.items()
        }
        union = core_schema.tagged_union_schema(choices, discriminator="type")
        own = core_schema.no_info_wrap_validator_function(self._of_package, union)
        return core_schema.no_info_before_validator_function(self._require_type, own)

    def _table(self, name: str, kind: type) -> type[StrictTable]:
        """Return the table of a dataclass, with its type and what all have."""
        return new_table(kind.__name__, table_of(kind), type=(Literal[name], ...), **self.more)

    def _of_package(self, values: Any, handler: Callable[[Any], object]) -> object:
        """Return what a table stands for; a type that is none of ours is that of a package."""
        name = values.get("type") if isinstance(values, Mapping) else None
        if self.plugins is None or not isinstance(name, str) or name in self.kinds:
            return handler(values)
        group, base = self.plugins
        entry = find_plugin(name, group)
        if entry is None:
            valid = ", ".join(map(repr, [*self.kinds, *plugin_names(group)]))
            context = {"discriminator": "'type'", "tag": name, "expected_tags": valid}
            raise PydanticKnownError("union_tag_invalid", context)
        kind = load_plugin(entry)
        if not (inspect.isclass(kind) and issubclass(kind, base) and _is_of_files(kind)):
            expected = f"expected a dataclass of the base {base.__name__} that a file can hold"
            raise broken(entry, f"found {kind!r:.60}, {expected}")
        return _built(
            self._table(name, kind).model_validate(values),
            lambda **options: self.make(kind, **options),
        )

    def _require_type(self, values: object) -> object:
        """Return the values of a table; raise where it has no type."""
        if isinstance(values, Mapping) and "type" not in values:
            names = ", ".join(map(repr, self.kinds))
            raise ProblemError(f"type is missing; expected one of {names}")
        return values


def made_of(
    table: type[StrictTable], make: Callable[..., object], handler: Any
) -> core_schema.CoreSchema:
    """Return the schema of a table whose values make something else."""

    def build(values: StrictTable) -> object:
        return _built(values, make)

    return core_schema.no_info_after_validator_function(build, handler.generate_schema(table))


def _built(values: StrictTable, make: Callable[..., object]) -> object:
    try:
        return make(**values.given)
    except UnknownNameError as error:  # no ValueError, of which pydantic knows the place
        raise ProblemError(str(error)) from error


def by_type(package: ModuleType, base: type, ending: str = "") -> dict[str, type]:
    """Return the public dataclasses of a package that have a base, by their name in a file."""
    public = (getattr(package, name) for name in package.__all__)
    kinds = [each for each in public if inspect.isclass(each)]
    kinds = [each for each in kinds if issubclass(each, base) and _is_of_files(each)]
    names = [kind.__name__.removesuffix(ending) for kind in kinds]
    snake = [re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in names]
    return dict(zip(snake, kinds, strict=True))


def _is_of_files(kind: Any) -> bool:
    """Return whether a file can hold a dataclass: all that it needs."""
    if not (inspect.isclass(kind) and is_dataclass(kind)):
        return False
    arguments = inspect.signature(kind).parameters.values()
    return {each.name for each in arguments if each.default is each.empty} <= {*fields_of(kind)}


def new_table(name: str, base: type[T], /, **fields: Any) -> type[T]:
    """Return a table with the fields of another one and more, each with its type and default."""
    create: Any = create_model  # its overloads know no computed fields
    table: type[T] = create(name, __base__=base, __doc__=base.__doc__, **fields)
    return table


@cache
def table_of(kind: Any) -> type[StrictTable]:
    """Return the table with the fields of a dataclass; required are those without a default."""
    table = new_table(kind.__name__, StrictTable, **fields_of(kind))
    table.__doc__ = inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]
    return table


def fields_of(
    source: Any,
    only: Sequence[str] | None = None,
    *,
    but: Sequence[str] = (),
    choices: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return the fields of a table for the arguments of a dataclass or a function.

    Args:
        source: whose signature and docs they have.
        only: names; all that a file can hold by default.
        but: names that are left out.
        choices: the texts that an argument can be, where its annotation says less.
    """
    function = source.__init__ if inspect.isclass(source) and not is_dataclass(source) else source
    hints, docs = hints_of(function), documented(source.__doc__ or "")
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(source).parameters.items():
        if (only is not None and name not in only) or name in but or name not in hints:
            continue
        text = Literal[tuple(choices[name])] if choices and name in choices else str
        value = value_in_file(hints[name], text)
        if value is None:
            continue
        required = parameter.default is parameter.empty
        default = parameter.default if isinstance(parameter.default, PLAIN) else None
        optional = value if required or default is not None else value | None
        fields[name] = (optional, Field(... if required else default, description=docs.get(name)))
    return fields


def value_in_file(hint: Any, text: Any = str) -> Any:
    """Return what a file holds for an annotation, `text` for str; None where it can hold none."""
    parts = [each for part in parts_of(hint) if (each := _part_in_file(part, text)) is not None]
    return reduce(or_, parts) if set(parts) - {type(None)} else None


def _part_in_file(hint: Any, text: Any) -> Any:
    origin, items = typing.get_origin(hint), typing.get_args(hint)
    if hint is str:
        return text
    if hint is ArrayLike:
        return Numbers
    if hint in PLAIN or origin is Literal:
        return hint
    if is_dataclass(hint):
        return Annotated[hint, TABLE] if _is_of_files(hint) else None
    sequence, mapping = typing.cast(Any, tuple), typing.cast(Any, dict)  # of computed items
    values = [value_in_file(item, text) for item in items if item is not Ellipsis]
    if not values or values[-1] is None or not isinstance(origin, type):
        return None
    if issubclass(origin, tuple) and Ellipsis not in items:
        return sequence[tuple(values)]
    if issubclass(origin, Mapping):
        return mapping[str, values[1]]
    return sequence[values[0], ...] if issubclass(origin, Sequence) else None
