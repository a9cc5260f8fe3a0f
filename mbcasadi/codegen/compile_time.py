"""How long a compiler will take: lines of C times the rate at which it went last time here."""

from collections.abc import Callable, Sequence
from pathlib import Path

from mbcasadi.codegen.cache.keys import digest
from mbcasadi.codegen.cache.store import read, write
from mbcasadi.codegen.compiler import BuildResult, compile_c

FIRST_RATES = {"-O0": 4e-5, "-O1": 1.1e-4, "-O2": 2.0e-4, "-O3": 3.0e-4}
"""s per line, before anything was compiled: G1 and Go2 with gcc 12."""

SHORTEST = 1.0
"""s; nothing is remembered of a compilation that took less: it is the compiler's start."""


def compile_with_estimate(
    command: Sequence[str],
    output: Path,
    lines: int,
    name: str,
    progress: Callable[[str], None] | None,
) -> BuildResult:
    """Run `command -o output`; say before how long that will take, and remember how long it took.

    Args:
        command: compiler, flags and files.
        output: library or program.
        lines: of C; where there are none it takes no time worth a word.
        name: of what is compiled.
        progress: called with one line before and one after.

    Raises:
        CompilerError: the compiler failed.
    """
    report = progress if progress and lines else lambda _text: None
    report(
        f"{name}: compiling {lines} lines, about {compile_seconds(lines, command):.2g} s unless "
        f"they were compiled before ({' '.join(command[:3])})"
    )
    result = compile_c(command, output)
    if lines:
        remember_rate(lines, command, result.seconds)
    note = result.note and f", {result.note}"
    report(f"{name}: compiled {lines} lines in {result.seconds:.1f} s{note}")
    return result


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
