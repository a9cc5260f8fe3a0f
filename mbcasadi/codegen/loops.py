"""Loops in place of the bodies of Functions that CasADi would write as straight-line text."""

import re

from mbcasadi.codegen.text import comma_list, template
from mbcasadi.description.loops import LOOPS, Loop

FUNCTION = re.compile(
    r"/\* (?P<name>loops_\w+):\(.*\n(?P<head>static int \w+\(.*\) \{\n)(?P<body>(?:.*\n)*?)\}\n"
)
"""A Function with a body of its own, in CasADi's text."""


def with_loops(text: str) -> str:
    """Return CasADi's C with the bodies of known Functions replaced by loops."""
    first = FUNCTION.search(text)
    if first is None:
        return text
    routines = template("loops.c.in", {}) + "\n"
    return text[: first.start()] + routines + FUNCTION.sub(_loop, text[first.start() :])


def _loop(found: re.Match[str]) -> str:
    loop = LOOPS.get(found["name"])
    if loop is None:  # of another process: CasADi's text computes the same
        return found[0]
    return f"/* {found['name']} */\n{found['head']}{_body(loop)}}}\n"


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
