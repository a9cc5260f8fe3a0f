"""A bound of the stack from the text of the C, for optimising compilers.

Generated functions are straight lines, so the values alive between two lines are known: they and
the local arrays are what a frame has to hold. A compiler moves lines, which keeps more values
alive, and saves registers. Both are covered by an allowance: a factor and bytes for each function.

A call chain's bytes add up, also where a compiler puts one function into another.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate

from mbcasadi.errors import ExportError

FUNCTION = re.compile(r"^[a-z][\w ]*[ *](\w+)\([^;{}()]*\)\s*\{", re.MULTILINE)
BRACE = re.compile(r"[{}]")
CALL = re.compile(r"\b(\w+)\(")
VALUE_OR_LINE = re.compile(r"\b[a-z]\d+\b|\n")  # a local of generated code: x17, p3, r0
ARRAY = re.compile(
    r"^\s*(?:const )?(?:casadi_real|ldp_real|double|float|casadi_int|int) (\w+\[.*);", re.M
)
SIZE = re.compile(r"\w+\[(\d+)(?: \+ (\d+))?\]")

BYTES = 8  # of a value
# GCC 12 for x86-64, AArch64 and Cortex-M7 from -O1 to -O3 and at -Os needs at most 1.22 times the
# bytes of a large frame (quadruped, x86-64, -O3), more in small ones with other functions in them.
FACTOR = 1.5
FRAME = 64  # return address and saved registers, bytes
LIBRARY = 1024  # of the C library: newlib's sin takes 560 bytes to reduce a large angle


@lru_cache(maxsize=4)  # a supervised law is asked for twice
def stack_bytes(text: str) -> int:
    """Return the bound of the stack of a tick, bytes, from the C's text.

    It holds from `-O1` on. Without optimisation every value has a place of its own, and the bound
    does not hold.

    Raises:
        ExportError: functions call each other in a circle.
    """
    bodies = dict(_functions(text))
    frames = {name: FRAME + FACTOR * BYTES * _values(body) for name, body in bodies.items()}
    calls = {name: [c for c in CALL.findall(body) if c in bodies] for name, body in bodies.items()}
    depths: dict[str, float] = {}
    deepest = max((_depth(name, frames, calls, depths, ()) for name in bodies), default=0.0)
    return 8 * round((deepest + LIBRARY) / 8 + 0.5)


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and bodies; a body is without its own name."""
    for match in FUNCTION.finditer(text):
        depth, end = 1, len(text)
        for brace in BRACE.finditer(text, match.end()):
            depth += 1 if brace.group() == "{" else -1
            if depth == 0:
                end = brace.end()
                break
        yield match[1], text[match.end() : end]


def _values(body: str) -> int:
    """Return the entries of local arrays and the most values alive between two lines."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    line = 0
    for word in VALUE_OR_LINE.findall(body):
        if word == "\n":
            line += 1
        else:
            first.setdefault(word, line)
            last[word] = line
    change = [0] * (line + 2)
    for word, k in first.items():
        change[k] += 1
        change[last[word] + 1] -= 1
    most = max(accumulate(change))
    declared = (sizes for d in ARRAY.findall(body) for sizes in SIZE.findall(d.split("=")[0]))
    return most + sum(int(size) + int(more or 0) for size, more in declared)


def _depth(
    name: str,
    frames: dict[str, float],
    calls: dict[str, list[str]],
    depths: dict[str, float],
    path: tuple[str, ...],
) -> float:
    """Return the bytes of the deepest chain of calls from a function."""
    if name in path:
        raise ExportError(f"{name} calls itself by {', '.join(path)}: its stack has no bound")
    if name not in depths:
        below = (_depth(c, frames, calls, depths, (*path, name)) for c in set(calls[name]))
        depths[name] = frames[name] + max(below, default=0.0)
    return depths[name]
