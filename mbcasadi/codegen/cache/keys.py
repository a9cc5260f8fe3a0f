"""Keys of entries: everything that an answer depends on, as one digest."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import casadi as ca

from mbcasadi.codegen.text import package_version
from mbcasadi.platforms import UNALIGNED

FORMAT = "1"
"""Of the keys and entries; another one finds nothing of this one."""

# Words of a command whose whole meaning is in the word. Others may read files or name the output.
KNOWN = ("-O", "-std=", "-f", "-m", "-W", "-w", "-D", "-U", "-pedantic", "-shared", "-lm",
         "-pthread", "-pipe", "--param=")  # fmt: skip
ALSO_KNOWN = ("-static-libgcc", "-Wl,--export-all-symbols", "-Wl,-install_name,", UNALIGNED)
"""Of `mbcasadi.platforms`, though words of this kind may read files."""

STRIP = "-s"
FOLDERS = ("-I", "-isystem")
READ_FILES = ("-fprofile", "-fplugin", "-fdump", "-ftest-coverage", "-fauto-profile", "-Wl,",
              "-Wa,", "-Wp,", "-fuse-ld", "-fmodule", "-fcallgraph", "-frecord")  # fmt: skip
# Variables that compilers and linkers read.
VARIABLES = ("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX",
             "SDKROOT", "MACOSX_DEPLOYMENT_TARGET", "SOURCE_DATE_EPOCH", "CFLAGS")  # fmt: skip


def build_key(command: Sequence[str]) -> str | None:
    """Return the key of what a compiler's command makes; None where it cannot be known.

    It depends on the compiler (path, date, version, target, and what the flags mean on this
    machine), on the flags, on the C of all files with their headers put in, on the content of
    libraries, and on the C library, but on no folder's name.

    Args:
        command: compiler, flags and files, without the output.
    """
    compiler = shutil.which(command[0])
    words = _Words.of(command[1:])
    if compiler is None or words is None:
        return None
    try:
        known = _compiler(compiler, Path(compiler).stat().st_mtime_ns, words.flags)
        text = _output((compiler, *words.flags, *words.folders, "-E", "-P", *words.sources))
        libraries = [_file(Path(word)) for word in words.libraries]
    except OSError:
        return None
    if known is None or text is None:
        return None
    system = (sys.platform, platform.machine(), *platform.libc_ver())
    variables = (f"{name}={os.environ.get(name)}" for name in VARIABLES)
    return digest((FORMAT, "build", known, *system, *variables, *words.flags, text, *libraries))


def text_key(functions: Sequence[ca.Function], words: Sequence[str]) -> str | None:
    """Return the key of a text generated from Functions; None where one has no serialisation.

    Every number of a Function enters in all its digits.

    Args:
        functions: that it is generated from.
        words: what else it depends on.
    """
    try:
        contents = [function.serialize() for function in functions]
    except RuntimeError:  # CasADi: external functions and callbacks
        return None
    versions = (package_version(), ca.CasadiMeta.version(), ca.CasadiMeta.git_revision())
    return digest((FORMAT, "text", *versions, _generator(), *words, *contents))


def part_key(text: str) -> str:
    """Return the key of what is written in the place of a part of CasADi's C."""
    return digest((FORMAT, "part", package_version(), _generator(), text))


def digest(parts: Iterable[str]) -> str:
    """Return the digest of some texts, which changes with each of them and with their number."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode()
        total.update(f"{len(data)}:".encode())
        total.update(data)
    return total.hexdigest()


class _Words(NamedTuple):
    """The words of a command by what they are."""

    flags: tuple[str, ...]
    folders: tuple[str, ...]
    sources: tuple[str, ...]
    libraries: tuple[str, ...]

    @staticmethod
    def of(words: Sequence[str]) -> "_Words | None":
        """Return the words; None where one has an unknown meaning."""
        flags, folders, files = [], [], []
        rest = iter(words)
        for word in rest:
            if word in FOLDERS:
                folders += [word, next(rest, "")]
            elif word.startswith(FOLDERS):
                folders.append(word)
            elif word.startswith("-"):
                unknown = word.startswith(READ_FILES) or not word.startswith(KNOWN)
                if unknown and word != STRIP and not word.startswith(ALSO_KNOWN):
                    return None
                flags.append(word)
            elif Path(word).is_file():
                files.append(word)
            else:
                return None
        sources = tuple(word for word in files if word.endswith(".c"))
        libraries = tuple(word for word in files if word.endswith((".a", ".o", ".lib")))
        if not sources or len(sources) + len(libraries) < len(files):
            return None
        return _Words(tuple(flags), tuple(folders), sources, libraries)


def _file(path: Path) -> str:
    return path.suffix + hashlib.sha256(path.read_bytes()).hexdigest()


def _output(command: Sequence[str]) -> str | None:
    """Return what a command prints; None where it fails."""
    process = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return process.stdout.decode(errors="replace") if process.returncode == 0 else None


@cache
def _compiler(path: str, changed: int, flags: tuple[str, ...]) -> str | None:
    """Return path, version and predefined macros of a compiler; None where it tells nothing.

    Macros name its version, its target and the instructions that `-march=native` means here.

    Args:
        path: of the program.
        changed: when, ns.
        flags: of the command.
    """
    version = _output((path, "--version"))
    macros = _output((path, *flags, "-dM", "-E", "-x", "c", "-"))
    if version is None or macros is None:
        return None
    return digest((str(Path(path).resolve()), str(changed), version, macros))


@cache
def _generator() -> str:
    """Return a digest of the package's own source: of everything that may change a text."""
    root = Path(__file__).parents[2]
    files = sorted(path for path in root.rglob("*") if path.suffix in (".py", ".in"))
    return digest(f"{path.relative_to(root).as_posix()} {_file(path)}" for path in files)
