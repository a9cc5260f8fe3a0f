"""The flags with which an export is compiled: its own, and those that make the compiler quicker."""

import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from mbcasadi.codegen.compiler import accepts, find_compiler
from mbcasadi.platforms import platform_of, usable_cores

STANDARD = ("-std=c99",)

LONG = 200_000
"""Bytes of C from which on the parts of a library are compiled side by side."""

STRAIGHT_LINE = (
    *("-fno-gcse", "-fno-gcse-after-reload", "-fno-dse", "-fno-tree-dse"),
    *("-fno-tree-loop-distribution", "-fno-tree-loop-distribute-patterns"),
)
"""Passes that find little in long functions of assignments, and take up to a third of the time."""

Flags = Sequence[str] | None
"""Of optimisation; None: the export's."""


def compile_command(folder: Path, own: Sequence[str], cc: str | None, flags: Flags) -> list[str]:
    """Return the compiler with the flags that all parts of an export have.

    Args:
        folder: of the export.
        own: flags of the export.
        cc: the compiler, as in `find_compiler`.
        flags: of a user, in place of its own.
    """
    compiler = find_compiler(cc)
    optimisation = [*own] if flags is None else [*flags]
    if flags is None and "-O3" in own:
        optimisation += straight_line_flags(compiler)
    return [*compiler, *STANDARD, *optimisation, f"-I{folder}"]


def library_flags(
    sources: Sequence[str], own: Sequence[str], cc: str | None, flags: Flags
) -> tuple[str, ...]:
    """Return the flags of a shared library; long sources are shared among the cores.

    Args:
        sources: files of C.
        own, cc, flags: as in `compile_command`.
    """
    shared = platform_of().shared
    is_long = sum(Path(source).stat().st_size for source in sources) >= LONG
    if flags is not None or not is_long or "-O0" in own:
        return shared
    return (*side_by_side_flags(find_compiler(cc)), *shared)


@cache
def straight_line_flags(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags by which a compiler is quicker with long functions; GCC knows them."""
    return STRAIGHT_LINE if accepts((*command, *STRAIGHT_LINE, "-c")) else ()


@cache
def side_by_side_flags(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags by which a compiler optimises parts of one file at the same time.

    GCC does so when it optimises at the link, with `make` to start its processes.
    """
    jobs = usable_cores()
    flags = (f"-flto={jobs}", f"--param=lto-partitions={2 * jobs}")
    known = jobs > 1 and shutil.which("make") is not None
    return flags if known and accepts((*command, *flags, *platform_of().shared)) else ()
