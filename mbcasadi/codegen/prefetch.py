"""Code that a controller fetches into the caches before a tick needs it, where a user asks for it.

A tick runs through hundreds of kB of straight-line code once. Where other work has swept the caches
since the tick before, the processor waits for memory line by line. With `-D<NAME>_PREFETCH` a tick
begins by asking for all lines of its Functions, many at a time; where they are still in the caches,
that wastes some of its time.
"""

import re

from mbcasadi.codegen.text import template

FUNCTION = re.compile(r"^static int (?P<name>casadi_f\d+)\((?P<arguments>.*)\) \{$", re.MULTILINE)
PER_LINE = 6
"""Functions that are named in a line of C."""


def with_prefetch(text: str, name: str) -> str:
    """Return CasADi's C with a macro `<name>_prefetch()`, which does nothing unless asked for.

    Args:
        text: C of CasADi.
        name: of the controller.
    """
    first = FUNCTION.search(text)
    names = [each["name"] for each in FUNCTION.finditer(text)]
    if first is None:
        return f"#define {name}_prefetch() ((void)0)\n\n{text}"
    lines = [names[i : i + PER_LINE] for i in range(0, len(names), PER_LINE)]
    values = {
        "name": name,
        "NAME": name.upper(),
        "arguments": first["arguments"],
        "functions": "\n".join(" ".join(f"IN_CODE({f})" for f in line) for line in lines),
    }
    place = _before_comment(text, first.start())
    return text[:place] + template("prefetch.c.in", values) + "\n" + text[place:]


def _before_comment(text: str, place: int) -> int:
    """Return where the line of comment above a place begins, or the place."""
    above = text.rfind("\n", 0, place - 1) + 1
    return above if text[above:place].startswith("/*") else place
