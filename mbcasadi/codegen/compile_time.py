"""How long a compiler will take: lines of C times the rate at which it went last time here."""

from collections.abc import Sequence

from mbcasadi.codegen.cache.keys import digest
from mbcasadi.codegen.cache.store import read, write

FIRST_RATES = {"-O0": 4e-5, "-O1": 1.1e-4, "-O2": 2.0e-4, "-O3": 3.0e-4}
"""s per line, before anything was compiled: G1 and Go2 with gcc 12."""

SHORTEST = 1.0
"""s; nothing is remembered of a compilation that took less: it is the compiler's start."""


def compile_seconds(lines: int, command: Sequence[str]) -> float:
    """Return the time that a compilation will take, s.

    Args:
        lines: of C.
        command: compiler and flags.
    """
    known = read(_key(command))
    levels = [FIRST_RATES[word] for word in command if word in FIRST_RATES]
    return lines * (float(known) if known else levels[-1] if levels else FIRST_RATES["-O0"])


def remember_rate(lines: int, command: Sequence[str], seconds: float) -> None:
    """Keep the rate of a compilation in the cache.

    Args:
        lines: of C.
        command: compiler and flags.
        seconds: that it took.
    """
    if seconds >= SHORTEST:
        write(_key(command), repr(seconds / lines).encode())


def _key(command: Sequence[str]) -> str:
    level = [word for word in command if word.startswith(("-O", "-m"))]
    return digest(("compiler's rate", command[0], *level))
