"""Loops in place of the bodies of Functions that CasADi would write as straight-line text."""

import re
from collections import Counter

from mbcasadi.codegen.text import comma_list, template
from mbcasadi.description.loops import LOOPS, Loop

FUNCTION = re.compile(
    r"/\* (?P<name>loops_\w+):\(.*\n(?P<head>static int \w+\(.*\) \{\n)(?P<body>(?:.*\n)*?)\}\n"
)
"""A Function with a body of its own, in CasADi's text."""

DEFINITION = re.compile(
    r"(?:/\* .*\n)?static int (?P<function>casadi_f\d+)\(.*\) \{\n(?:.*\n)*?\}\n\n?"
    r"|static const casadi_(?:int|real) (?P<constant>casadi_[sc]\d+)\[\d+\] =\s*\{[^}]*\};\n\n?"
)
ROUTINE = re.compile(
    r"(?:/\*(?:(?!\*/)[\s\S])*\*/\n)?LOOPS_INLINE \w+ (?P<name>loops_\w+)\((?:.*\n)*?\}\n\n?"
)
"""A routine of `loops.c.in` with its comment."""

PREFIX = re.compile(r"#define (casadi_\w+) CASADI_PREFIX\(\w+\)\n")
MOST_SHORT = 32767
"""C's least range of `short`."""

USES = 2
"""An internal name that nobody uses stands in its `#define` and in its definition."""


def with_loops(text: str, prefix: str) -> str:
    """Return CasADi's C with the bodies of known Functions replaced by loops.

    Args:
        text: C of CasADi.
        prefix: of the macro that switches vectors off.
    """
    first = FUNCTION.search(text)
    if first is None:
        return text
    routines = template("loops.c.in", {"NAME": prefix.upper()}) + "\n"
    text = text[: first.start()] + routines + FUNCTION.sub(_loop, text[first.start() :])
    return _without_unused_routines(_without_unused(text))


def _without_unused_routines(text: str) -> str:
    """Return the text without the routines that no loop calls."""
    while True:
        uses = Counter(re.findall(r"\bloops_\w+\b", text))
        unused = [f[0] for f in ROUTINE.finditer(text) if uses[f["name"]] == 1]
        if not unused:
            return text
        for routine in unused:
            text = text.replace(routine, "", 1)


def _without_unused(text: str) -> str:
    """Return the text without what only the replaced bodies called or read."""
    while True:
        uses = Counter(re.findall(r"\bcasadi_[fsc]\d+\b", text))
        names = {_name(found) for found in DEFINITION.finditer(text)}
        unused = {name for name in names if uses[name] <= USES}
        if not unused:
            return text
        text = _without(text, unused)


def _without(text: str, names: set[str]) -> str:
    """Return the text without the definitions of these names."""
    text = DEFINITION.sub(lambda found: "" if _name(found) in names else found[0], text)
    return PREFIX.sub(lambda found: "" if found[1] in names else found[0], text)


def _name(found: re.Match[str]) -> str:
    return found["function"] or found["constant"]


def _loop(found: re.Match[str]) -> str:
    loop = LOOPS.get(found["name"])
    if loop is None or not _fits(loop):  # of another process, or too large: CasADi's text serves
        return found[0]
    return f"/* {found['name']} */\n{found['head']}{_body(loop)}}}\n"


def _fits(loop: Loop) -> bool:
    """Whether the tables are those of C's `short`."""
    return all(entry <= MOST_SHORT for table in loop.tables for entry in table)


def _body(loop: Loop) -> str:
    lines = [
        f"  static const short table{i}[] = {{{comma_list(table, '    ')}}};"
        for i, table in enumerate(loop.tables)
    ]
    lines += [f"  casadi_real unused{i}[{size}];" for i, size in _optional(loop)]
    lines += [f"  casadi_real work[{loop.work}];"] if loop.work else []
    arguments = [str(size) for size in loop.sizes]
    arguments += [f"table{i}" for i in range(len(loop.tables))]
    arguments += [f"arg[{i}]" for i in range(loop.inputs)]
    unused = dict(_optional(loop))
    arguments += [
        f"res[{i}] ? res[{i}] : unused{i}" if i in unused else f"res[{i}]"
        for i in range(len(loop.outputs))
    ]
    arguments += ["work"] if loop.work else []
    return "\n".join([*lines, f"  {loop.routine}({', '.join(arguments)});", "  return 0;", ""])


def _optional(loop: Loop) -> list[tuple[int, int]]:
    """Return place and size of the outputs that a caller may not want: there are others."""
    return list(enumerate(loop.outputs)) if len(loop.outputs) > 1 else []
