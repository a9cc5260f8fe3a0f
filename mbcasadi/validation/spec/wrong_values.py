"""What to say of a file that is wrong: where, in its line, what was found, what is expected."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mbcasadi.errors import ProblemError
from mbcasadi.unknown_names import unknown_name

LABELS = ("name", "frame", "constraint", "coordinate", "type")
"""Keys by which a message names one of several tables, the first one that it has."""

Path = tuple[int | str, ...]
"""Keys and numbers of entries that lead to a value."""


class UnknownKeyError(ProblemError):
    """A table has a key that it does not know."""

    def __init__(self, key: str, valid: Sequence[str]) -> None:
        super().__init__(str(unknown_name("key", key, valid)))
        self.key = key


def error_text(error: ValidationError, tables: Mapping[str, object], text: str = "") -> str:
    """Return the wrong keys of the tables of a file in one line.

    Args:
        error: of pydantic.
        tables: as the file has them.
        text: of the file, for the numbers of lines; "" where there is none.
    """
    details = error.errors(include_url=False)
    places = [detail["loc"] for detail in details]
    by_place: dict[Path, list[ErrorDetails]] = {}
    for detail in details:
        loc = detail["loc"]
        if detail["type"] == "too_short" and any(loc == p[: len(loc)] != p for p in places):
            continue  # only as its entries are wrong
        missing = detail["type"] == "missing"
        by_place.setdefault(_path(loc, tables, missing=missing), []).append(detail)
    return "; ".join(
        ": ".join(filter(None, (_place(path, alternatives[0], tables, text), _words(alternatives))))
        for path, alternatives in by_place.items()
    )


def _place(path: Path, detail: ErrorDetails, tables: object, text: str) -> str:
    """Return the line of the file and the place in words, of those that are known."""
    cause = detail.get("ctx", {}).get("error")
    key = cause.key if isinstance(cause, UnknownKeyError) else None
    key = "type" if detail["type"] == "union_tag_invalid" else key
    within = path if key is None else (*path, key)
    number = line_of(within, text) if text and within else None
    line = [] if number is None else [f"line {number}"]
    return ", ".join([*line, *filter(None, [_in_words(path, tables)])])


TYPES_OF_PYDANTIC = {
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "tuple_type": "a list",
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
}
"""Error of pydantic → what was expected; `[[task]]` is a list of tables, `[task]` is one."""

NOT_A_VALUE: dict[type, str] = {
    dict: "one table; [[NAME]] begins each table of a list",
    list: "a list; [NAME] begins one table",
}
"""What was found, by its type, where no list or no table of its own is expected."""


def _words(alternatives: Sequence[ErrorDetails]) -> str:
    """Return what is wrong with one value, of which there can be several kinds."""
    first = alternatives[0]
    context, value = first.get("ctx", {}), first["input"]
    match first["type"]:
        case "value_error":  # one of ours, which says what was found
            return str(context["error"])
        case "union_tag_invalid":
            valid = re.findall("'([^']*)'", context["expected_tags"])
            return str(unknown_name("type", context["tag"], valid))
        case "union_tag_not_found":
            return "type is missing"
        case "missing":
            return "field required"
        case "too_short":
            return f"{len(value)} entries; expected at least {context['min_length']}"
    expected = [TYPES_OF_PYDANTIC.get(each["type"]) for each in alternatives]
    if None in expected:
        messages = [each["msg"][:1].lower() + each["msg"][1:] for each in alternatives]
        return f"{', or '.join(dict.fromkeys(messages))}, found {value!r:.60}"
    found = NOT_A_VALUE.get(type(value), f"{value!r:.60}")
    return f"expected {' or '.join(map(str, dict.fromkeys(expected)))}, found {found}"


def _path(loc: Sequence[int | str], tables: object, *, missing: bool) -> Path:
    """Return which keys of the file a place of pydantic is.

    Parts that are not in the file are pydantic's names of alternatives, but for the key that is
    missing.
    """
    path: Path = ()
    tagged = False
    for k, part in enumerate(loc):
        if tagged and part == _entry(tables, "type"):
            tagged = False
            continue
        value = _entry(tables, part)
        if value is None and not (missing and k == len(loc) - 1):
            continue
        tagged, tables = isinstance(part, int), value
        path += (part,)
    return path


def _in_words(path: Path, tables: object) -> str:
    """Return a place in the file as people say it: `task 2 ('posture').kp`.

    Entries of a list count from one; tables in it are named by what they hold.
    """
    text = ""
    for part in path:
        tables = _entry(tables, part)
        if isinstance(part, int):
            count = f" {part + 1}" if isinstance(tables, Mapping) else f", entry {part + 1}"
            label = next(_labels(tables), "")
            text += count + (f" ({label!r})" if label else "")
        else:
            text += f".{part}" if text else part
    return text


def _labels(table: object) -> Iterator[str]:
    """Yield the names of a table."""
    for key in LABELS:
        label = _entry(table, key)
        if isinstance(label, str) and label:
            yield label


def _entry(values: object, part: int | str) -> object:
    """Return an entry of a table or a list; None where there is none."""
    if isinstance(values, Mapping):
        return values.get(part)
    if isinstance(values, list | tuple) and isinstance(part, int) and part < len(values):
        return values[part]
    return None


def line_of(path: Path, text: str) -> int | None:
    """Return the line of a TOML file in which a value begins, or the table that lacks it."""
    for longest in range(len(path), 0, -1):
        before = 0
        for count, tables in _beginnings(text):
            value: object = tables
            for part in path[:longest]:
                value = _entry(value, part)
            if value is not None:
                return before + 1
            before = count
    return None


def _beginnings(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield how many lines of a TOML file are a file by themselves, and their tables."""
    lines = text.splitlines()
    for count in range(1, len(lines) + 1):
        with suppress(ValueError):  # within a list of several lines
            yield count, tomllib.loads("\n".join(lines[:count]))


def syntax_text(error: ValueError, text: str) -> str:
    """Return what TOML's parser says, with the line of a value that does not end."""
    words, at_end = str(error), " (at end of document)"
    if not words.endswith(at_end):
        return words
    before = max((count for count, _ in _beginnings(text)), default=0)
    return f"{words.removesuffix(at_end)} (from line {before + 1} on, up to the end of the file)"
