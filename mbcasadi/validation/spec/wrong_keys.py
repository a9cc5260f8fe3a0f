"""What to say of the wrong keys of a controller's TOML file."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from mbcasadi.unknown_names import closest, listed_names

VALUE_TAGS = {"term", "sum", "number", "sine", "step", "steadymotion"}
TAGS = VALUE_TAGS | {"posture", "frame", "com", "momentum", "direction", "look_at", "distance"}
"""Tags of alternatives, which pydantic puts into the place of an error."""


def error_text(error: ValidationError, table: type[BaseModel]) -> str:
    """Return the wrong keys in one line, unknown ones first: they often cause the others."""
    details = sorted(error.errors(include_url=False), key=lambda d: d["type"] != "extra_forbidden")
    lines = []
    for detail in details:
        key = _key(detail["loc"])
        if detail["type"] == "extra_forbidden":
            lines.append(f"{key}: unknown key{_valid_keys(detail['loc'], table)}")
        elif detail["type"] == "value_error":  # one of ours, which says what was found
            lines.append(f"{key}: {detail['ctx']['error']}")
        else:
            lines.append(f"{key}: {detail['msg'].lower()}, found {detail['input']!r:.60}")
    return "; ".join(lines)


def _key(loc: tuple[int | str, ...]) -> str:
    """Return a key of the file, without the tags of the alternatives that pydantic tried."""
    inner = [part for part in loc[:-1] if part not in TAGS]
    last = [part for part in loc[-1:] if part not in VALUE_TAGS]
    return ".".join(str(part) for part in inner + last)


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
        else:
            pending += get_args(kind)


def _tags(table: type[BaseModel]) -> set[str]:
    """Return the tags of a table: its types, or its name."""
    field = table.model_fields.get("type")
    types = () if field is None else get_args(field.annotation)
    return {table.__name__.lower(), *map(str, types)}
