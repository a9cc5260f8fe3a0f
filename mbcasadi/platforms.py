"""What depends on the operating system, as functions of its name: "linux", "darwin" or "win32".

The name is `sys.platform` by default; tests give others, so that each system is tested on any. On
Windows compilers are those of MinGW: their C library is the one that CasADi's wheel was built with.
"""

import os
import platform
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MSVC = ("cl", "clang-cl")
"""Compilers that take other flags, and cannot link DAQP as CasADi's wheel has it."""

MSVC_FAULT = (
    "takes other flags, and cannot link the DAQP of CasADi's wheel, which MinGW built; "
    "expected GCC or Clang for MinGW-w64"
)

UNALIGNED = "-Wa,-muse-unaligned-vector-move"
"""Windows aligns the stack to 16 bytes and GCC's vectors of 32 expect 32: GCC's bug 54412."""


@dataclass(frozen=True)
class Platform:
    """One operating system.

    Attributes:
        library, program: suffixes of file names.
        compilers: names to look for, in this order.
        advice: how a compiler is installed.
        shared: flags that make a shared library, on Linux without a table of inner names. On
            Windows a symbol that is exported by name would hide all others.
        mathematics: flags that link the functions of `<math.h>`.
        native: what `-march=native` needs beside it.
        renderers: values of MUJOCO_GL that draw without a window, in this order.
        frees_files: whether a file that is open or loaded can be replaced and deleted.
        most_processes: of a pool.
    """

    library: str
    program: str
    compilers: tuple[str, ...]
    advice: str
    shared: tuple[str, ...]
    mathematics: tuple[str, ...]
    native: tuple[str, ...]
    renderers: tuple[str, ...]
    frees_files: bool
    most_processes: int | None


UNIX_COMPILERS = ("cc", "gcc", "clang")
LINUX = Platform(
    library=".so",
    program="",
    compilers=UNIX_COMPILERS,
    advice="Debian: apt-get install gcc",
    shared=("-shared", "-fPIC", "-s"),
    mathematics=("-lm",),
    native=(),
    renderers=("egl", "osmesa"),
    frees_files=True,
    most_processes=None,
)
MACOS = Platform(
    library=".dylib",
    program="",
    compilers=UNIX_COMPILERS,
    advice="macOS: xcode-select --install",
    shared=("-shared", "-fPIC"),
    mathematics=("-lm",),
    native=(),
    renderers=("cgl",),
    frees_files=True,
    most_processes=None,
)
WINDOWS = Platform(
    library=".dll",
    program=".exe",
    compilers=("gcc", "clang"),
    advice="Windows: GCC for MinGW-w64, from MSYS2 (pacman -S mingw-w64-ucrt-x86_64-gcc) or "
    "winlibs.com, its bin folder on the PATH",
    shared=("-shared", "-static-libgcc", "-Wl,--export-all-symbols"),
    mathematics=(),
    native=(UNALIGNED,),
    renderers=("wgl",),
    frees_files=False,
    most_processes=61,
)


def platform_of(system: str = sys.platform) -> Platform:
    """Return an operating system; those that are not known are taken for a Linux."""
    return {"darwin": MACOS, "win32": WINDOWS}.get(system, LINUX)


def library_name(stem: str, system: str = sys.platform) -> str:
    """Return the file name of a shared library."""
    return f"lib{stem}{platform_of(system).library}"


def program_name(stem: str, system: str = sys.platform) -> str:
    """Return the file name of a program."""
    return f"{stem}{platform_of(system).program}"


def identity_flags(file: str, system: str = sys.platform) -> tuple[str, ...]:
    """Return the flags with which a program that is linked with a library finds it by `file`.

    On macOS a library carries the name that the linker gave it: without the flag that of a
    temporary file.
    """
    named = system == "darwin" and file.endswith(MACOS.library)
    return (f"-Wl,-install_name,@rpath/{file}",) if named else ()


def search_flags(folder: Path, system: str = sys.platform) -> tuple[str, ...]:
    """Return the flags with which a program finds libraries in a folder.

    On Windows there are none: it looks in its own folder.
    """
    return () if system == "win32" else (f"-Wl,-rpath,{folder}",)


def split_command(text: str, system: str = sys.platform) -> tuple[str, ...]:
    """Return the words of a command line; on Windows a backslash stands for itself.

    Raises:
        ValueError: quotes are not closed.
    """
    if system != "win32":
        return tuple(shlex.split(text))
    return tuple(word.strip('"') for word in shlex.split(text, posix=False))


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine_name() -> str:
    """Return the name of this machine's processor, or else of its kind."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "unknown"
