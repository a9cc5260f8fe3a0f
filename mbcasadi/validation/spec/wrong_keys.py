"""What to say of the wrong keys of a controller's TOML file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from mbcasadi.unknown_names import closest, listed_names
from mbcasadi.validation.spec.tables import table_of

VALUE_TAGS = {"term", "sum", "number", "sine", "step", "steadymotion"}
TAGS = VALUE_TAGS | {"posture", "frame", "com", "momentum", "direction", "look_at", "distance"}
"""Tags of alternatives, which pydantic puts into the place of an error."""


LABELS = ("name", "frame", "constraint", "coordinate", "type")
"""Keys by which a message names one of several tables, the first one that it has."""


def error_text(error: ValidationError, table: type[BaseModel], given: Mapping[str, object]) -> str:
    """Return the wrong keys in one line, unknown ones first: they often cause the others.

    Args:
        error: of pydantic.
        table: that was expected.
        given: the tables of the file.
    """
    details = sorted(error.errors(include_url=False), key=lambda d: d["type"] != "extra_forbidden")
    lines = []
    for detail in details:
        tags_dropped = [part for part in detail["loc"][:-1] if part not in TAGS]
        key = detail["loc"][-1]
        if detail["type"] == "extra_forbidden":
            place = _place(tags_dropped, given)
            text = f"unknown key {key!r}{_valid_keys(detail['loc'], table)}"
            lines.append(f"{place}: {text}" if place else text)
        elif detail["type"] == "value_error":  # one of ours, which says what was found
            lines.append(f"{_place([*tags_dropped, key], given)}: {detail['ctx']['error']}")
        else:
            own = [] if key in VALUE_TAGS else [key]
            found = f"{detail['msg'].lower()}, found {detail['input']!r:.60}"
            lines.append(f"{_place([*tags_dropped, *own], given)}: {found}")
    return "; ".join(lines)


def _place(parts: Sequence[int | str], given: object) -> str:
    """Return a place in the file as people say it: `task 2 ('posture').kp`.

    Entries of a list count from one; tables in it are named by what they hold.
    """
    text = ""
    for part in parts:
        given = _entry(given, part)
        if isinstance(part, int):
            labels = [_entry(given, key) for key in LABELS]
            label = next((each for each in labels if isinstance(each, str) and each), "")
            count = f" {part + 1}" if isinstance(given, Mapping) else f", entry {part + 1}"
            text += count + (f" ({label!r})" if label else "")
        else:
            text += f".{part}" if text else part
    return text


def _entry(given: object, part: int | str) -> object:
    """Return an entry of a table or a list; None where there is none."""
    if isinstance(given, Mapping):
        return given.get(part)
    if isinstance(given, list | tuple) and isinstance(part, int) and part < len(given):
        return given[part]
    return None


def _valid_keys(loc: tuple[int | str, ...], table: type[BaseModel]) -> str:
    """Return the keys that are valid beside an unknown one, and the closest."""
    tables = [table]
    for part in loc[:-1]:
        inner = [m for t in tables if part in t.model_fields for m in _models(t, str(part))]
        tagged = [t for t in tables if part in _tags(t)]
        tables = inner or tagged or tables
    valid = sorted({key for each in tables for key in each.model_fields})
    near = closest(str(loc[-1]), valid, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"; valid: {listed_names(loc[-1], valid)}{hint}"


def _models(table: type[BaseModel], field: str) -> Iterator[type[BaseModel]]:
    """Yield the tables that a field of a table can hold."""
    pending: list[Any] = [table.model_fields[field].annotation]
    while pending:
        kind = pending.pop()
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield kind
        elif isinstance(kind, type) and is_dataclass(kind):
            yield table_of(kind)
        else:
            pending += get_args(kind)


def _tags(table: type[BaseModel]) -> set[str]:
    """Return the tags of a table: its types, or its name."""
    field = table.model_fields.get("type")
    types = () if field is None else get_args(field.annotation)
    return {table.__name__.lower(), *map(str, types)}
