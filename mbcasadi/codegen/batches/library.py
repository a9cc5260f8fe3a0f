"""The compiled library of a batch, and its calls."""

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.codegen.compiler import (
    BuildResult,
    compile_c,
    find_compiler,
    library_to_load,
    native_flags,
)
from mbcasadi.errors import ExportError
from mbcasadi.platforms import library_name, platform_of
from mbcasadi.short_text import summarised

ALIGNMENT = 64
"""Bytes; of the longest vectors."""

WARNINGS_OFF = ("-w",)
ARITHMETIC = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing")


class Port(ctypes.Structure):
    """One input or output: `struct batch_port` of the C."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("stride", ctypes.c_longlong),
        ("offset", ctypes.c_void_p),
        ("together", ctypes.c_longlong),
    )


@summarised
@dataclass(frozen=True)
class BatchLibrary:
    """One path through a compiled batch.

    Attributes:
        lanes: states that are evaluated side by side.
        build: of the library.
    """

    lanes: int
    build: BuildResult
    memory_bytes: int
    run_c: Any

    def memory(self) -> NDArray[np.uint8]:
        """Return memory for one thread, aligned for vectors."""
        block = np.zeros(self.memory_bytes + ALIGNMENT, np.uint8)
        start = -block.ctypes.data % ALIGNMENT
        return block[start : start + self.memory_bytes]

    def run(
        self,
        ports: tuple[Any, Any],
        states: "SharedStates",
        steps: int,
        memory: NDArray[np.uint8],
    ) -> bool:
        """Evaluate states that no other thread has taken; return whether all are evaluated."""
        return bool(self.run_c(*ports, ctypes.byref(states), steps, memory.ctypes.data))


class SharedStates(ctypes.Structure):
    """States that are shared among threads: `struct batch_states` of the C."""

    _fields_ = tuple((name, ctypes.c_longlong) for name in ("count", "part", "next", "done"))


def build_library(
    sources: Mapping[str, str],
    symbol: str,
    folder: Path,
    command: tuple[str, ...],
    libraries: Sequence[str] = (),
) -> BatchLibrary:
    """Write and compile sources in a folder, unless the same library is there, and load it.

    Args:
        sources: text by file name.
        symbol: prefix of the functions that run it.
        folder: of sources and library.
        command: compiler and flags.
        libraries: further words of the command, behind the sources.

    Raises:
        CompilerError: the compiler failed.
        ExportError: the folder cannot be written, or the library not be loaded.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in sources.items():
            (folder / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ExportError(
            f"cannot write {folder}: {error.strerror or error}; choose a folder that can be written"
        ) from error
    words = "\0".join((*command, *libraries, *sources.values()))
    key = hashlib.sha256(words.encode()).hexdigest()[:12]
    path = folder / library_name(f"{symbol}_{key}")
    here = platform_of()
    full = (*command, *here.shared, *(str(folder / file) for file in sources))
    full = (*full, *libraries, *here.mathematics)
    built = BuildResult(path, full, 0.0) if path.exists() else compile_c(full, path)
    return _loaded(built, symbol)


def _loaded(built: BuildResult, symbol: str) -> BatchLibrary:
    try:
        library = ctypes.CDLL(str(library_to_load(built.path)))
    except OSError as error:
        raise ExportError(
            f"cannot load {built.path}: {error}; compile it for this machine"
        ) from error
    lanes, memory = getattr(library, f"{symbol}_lanes"), getattr(library, f"{symbol}_memory")
    memory.restype = ctypes.c_longlong
    run = getattr(library, f"{symbol}_run")
    run.restype = ctypes.c_int
    run.argtypes = (ctypes.c_void_p,) * 3 + (ctypes.c_longlong, ctypes.c_void_p)
    return BatchLibrary(int(lanes()), built, int(memory()), run)


@dataclass(frozen=True)
class BatchBuild:
    """How a batch is compiled.

    Attributes:
        lanes: whether vectors are used where the compiler has them; else the scalar path.
        folder: where the C and the library stay; a library of the same C is used again. A
            folder that lasts as long as the process by default.
        cc: the compiler, as in `CProject.build`.
        flags: compiler flags in the place of `-O2` (`-O1` for very large Functions) and of the
            flag for this machine's instructions.
    """

    lanes: bool = True
    folder: str | Path | None = None
    cc: str | None = None
    flags: Sequence[str] | None = None

    def __post_init__(self) -> None:
        require_fields(self)


BATCH_BUILD = BatchBuild()


def compiler_command(build: BatchBuild, level: str) -> tuple[str, ...]:
    """Return the compiler's command without files, by default at this level of optimisation.

    Raises:
        CompilerError: there is no compiler.
    """
    command = find_compiler(build.cc)
    chosen = (level, *native_flags(command)) if build.flags is None else tuple(build.flags)
    return (*command, "-std=gnu99", *chosen, *ARITHMETIC, *WARNINGS_OFF)
