"""Helpers for C text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

import numpy as np

WIDTH = 96
NO_IDENTIFIER = re.compile(r"[^0-9A-Za-z]")


@cache
def package_version() -> str:
    """Return the version of this package; "unknown" where it runs without being installed."""
    try:
        return version("mbcasadi")
    except PackageNotFoundError:
        return "unknown"


def template(name: str, values: Mapping[str, str | int]) -> str:
    """Return a template with every `@key@` replaced; each key must be given."""
    text = files("mbcasadi.codegen").joinpath("templates", name).read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda match: str(values[match[1]]), text)


def plain_line(text: str) -> str:
    """Return a text for a table of Markdown: one line, without signs that mean something there."""
    kept = "".join(c if c.isprintable() else "?" for c in " ".join(text.split())).replace("|", "/")
    return re.sub(r"[`<>*\\\[\]]|(?<![^\W_])_|_(?![^\W_])", lambda match: f"\\{match[0]}", kept)


def number(value: float, real: str = "double") -> str:
    """Return a C number that reads back as the same one, NaN and infinity too.

    Args:
        value: any number.
        real: "double", or "float" for the nearest single precision.
    """
    if real == "float":
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if value == float("inf"):
        return "INFINITY"
    if value == -float("inf"):
        return "-INFINITY"
    if value != value:
        return "NAN"
    if real == "float":
        text = f"{value:.9g}"
        return f"{text}f" if set(text) & set(".e") else f"{text}.0f"
    return repr(float(value))


def c_string(text: str) -> str:
    """Return a C string literal of UTF-8; no compiler reads a trigraph or an escape in it."""
    return '"' + "".join(map(_c_byte, text.encode())) + '"'


def _c_byte(byte: int) -> str:
    letter = chr(byte)
    return letter if " " <= letter <= "~" and letter not in '"\\?' else f"\\{byte:03o}"


def comma_list(items: Iterable[str | int], indent: str = "  ") -> str:
    """Return `items` as a comma-separated list, wrapped to the page; "0" where it is empty."""
    entries = [str(item) for item in items] or ["0"]
    text = ", ".join(entries)
    if len(text) <= WIDTH - 30:
        return text
    lines, line = [], indent
    for entry in entries:
        if len(line) + len(entry) + 2 > WIDTH:
            lines.append(line.rstrip())
            line = indent
        line += f"{entry}, "
    lines.append(line.rstrip().rstrip(","))
    return "\n" + "\n".join(lines)


def constant(kind: str, name: str, values: Sequence[float], real: str = "double") -> str:
    """Return the definition of a constant array."""
    numbers = comma_list(number(v, real) for v in values)
    return f"{kind} {name}[{max(1, len(values))}] = {{{numbers}}};\n"


def unique_identifiers(labels: Iterable[str], taken: set[str]) -> list[str]:
    """Return upper-case C identifiers, with a number where two would be equal.

    The returned names are added to `taken`.
    """
    identifiers = []
    for label in labels:
        base = NO_IDENTIFIER.sub("_", label).upper()
        candidate, k = base, 1
        while candidate in taken:
            k += 1
            candidate = f"{base}_{k}"
        taken.add(candidate)
        identifiers.append(candidate)
    return identifiers
