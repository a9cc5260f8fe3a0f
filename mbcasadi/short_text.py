"""One line for a `repr`, and a small table for a notebook, of objects that hold much.

>>> @summarised
... @dataclass(frozen=True)
... class Motion: ...

Both show what `_summary` of the class returns, by name, or else the fields; the line leaves out
those that have their default. Vectors show their
first entries, matrices their shape, objects in them their names. HTML is escaped: names come from
files of others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from html import escape
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

FIGURES = 4
"""Significant digits of a number."""

SHOWN = 6
"""Entries of a vector or a list at most."""

LONGEST = 200
"""Characters of a `repr` at most."""

LONGEST_VALUE = 60
"""Characters of one value in a `repr` at most."""

T = TypeVar("T")


def summarised(kind: type[T]) -> type[T]:
    """Return the class with a `repr` of one line, and with a table."""
    changeable: Any = kind
    changeable.__repr__ = lambda self: summary_line(self, changed_of(self))
    return with_table(kind)


def with_table(kind: type[T]) -> type[T]:
    """Return the class with a table for notebooks, `_repr_html_`; its `repr` is its own.

    A class that has a `_repr_html_` keeps it.
    """
    if "_repr_html_" in vars(kind):
        return kind
    changeable: Any = kind
    changeable._repr_html_ = lambda self: html_table(type(self).__name__, summary_of(self))
    return kind


def summary_of(data: Any) -> Mapping[str, object]:
    """Return what an object shows of itself, by name."""
    own = getattr(data, "_summary", None)
    if own is not None:
        return dict(own())
    of_model = getattr(type(data), "model_fields", None)  # pydantic's
    names = getattr(data, "_fields", None) or of_model or [f.name for f in fields(data)]
    return {name: getattr(data, name) for name in names if not name.startswith("_")}


def changed_of(data: Any) -> Mapping[str, object]:
    """Return what an object shows of itself, without fields that have their default."""
    values = summary_of(data)
    if hasattr(data, "_summary") or not is_dataclass(data):
        return values
    defaults = {field.name: _default(field) for field in fields(data)}
    return {
        name: value for name, value in values.items() if not _is_equal(value, defaults.get(name))
    }


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _is_equal(value: object, default: object) -> bool:
    same_kind = type(value) is type(default)
    return value is default or (same_kind and bool(np.array_equal(value, default)))  # type: ignore[arg-type]


def summary_line(data: object, values: Mapping[str, object]) -> str:
    """Return `Kind(value, name=value)`; a name "" shows the value alone."""
    parts = []
    for name, value in values.items():
        text = cut(value_text(value), LONGEST_VALUE)
        parts.append(f"{name}={text}" if name else text)
    inside = cut(", ".join(parts), LONGEST - len(type(data).__name__) - 2)
    return f"{type(data).__name__}({inside})"


def html_table(title: str, values: Mapping[str, object]) -> str:
    """Return a table of names and values as HTML, escaped."""
    left = "style='text-align:left'"
    rows = "".join(
        f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(value_text(value))}</td></tr>"
        for name, value in values.items()
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def html_rows(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with headings as HTML, escaped."""
    left = "style='text-align:left'"
    head = "".join(f"<th {left}>{escape(text)}</th>" for text in headings)
    body = "".join(
        f"<tr>{''.join(f'<td {left}>{escape(text)}</td>' for text in row)}</tr>" for row in rows
    )
    caption = f"<caption {left}>{escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cut(text: str, longest: int) -> str:
    """Return a text, or its beginning and dots."""
    return text if len(text) <= longest else f"{text[: longest - 4]} ..."


def value_text(value: object) -> str:
    """Return a short text of a value."""
    if isinstance(value, Enum):
        return value.name or "none"
    if value is None or isinstance(value, (bool, str, Path)):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return f"{value:.{FIGURES}g}"
    if isinstance(value, np.ndarray):
        return array_text(value)
    if isinstance(value, Mapping):
        return listed([f"{key}: {value_text(each)}" for key, each in value.items()], "{}")
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return listed(list(value), "[]")
    return object_text(value)


def array_text(array: np.ndarray[Any, Any]) -> str:
    """Return the first entries of a vector, or the shape of a matrix."""
    if array.ndim == 1:
        return listed(array.tolist(), "[]")
    return "×".join(map(str, array.shape)) if array.ndim else value_text(array.item())


def listed(items: list[object] | list[str], brackets: str) -> str:
    """Return the first items of a list in brackets, and how many more there are."""
    more = [f"... {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    return f"{brackets[0]}{', '.join([*map(value_text, items[:SHOWN]), *more])}{brackets[1]}"


def object_text(value: Any) -> str:
    """Return the name of an object, or its kind with its name or shape."""
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if kind in {"Function", "SXFunction", "MXFunction"}:
        return str(value.name())
    if isinstance(shape, tuple):
        return f"{kind} {'×'.join(map(str, shape))}"
    if callable(value):
        return str(getattr(value, "__name__", kind))
    name = getattr(value, "name", None)
    return f"{kind} '{name}'" if isinstance(name, str) else kind
