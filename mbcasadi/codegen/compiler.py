"""Finding and running a C compiler, unless the same was compiled before (`codegen.cache`)."""

import atexit
import hashlib
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from mbcasadi.codegen.cache.keys import build_key
from mbcasadi.codegen.cache.store import folder, read, write
from mbcasadi.errors import CompilerError
from mbcasadi.platforms import MSVC, MSVC_FAULT, platform_of, split_command
from mbcasadi.short_text import summarised


@cache
def process_folder() -> Path:
    """Return a temporary folder that is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="mbcasadi-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def library_to_load(library: Path) -> Path:
    """Return the path to load a library from.

    On Windows that is a copy in this process's folder: a loaded library can be neither replaced nor
    deleted, nor can the folders above it, and exports are.
    """
    if platform_of().frees_files:
        return library
    copy = process_folder() / f"{hashlib.sha256(library.read_bytes()).hexdigest()}{library.suffix}"
    if not copy.exists():
        shutil.copyfile(library, copy)
    return copy


# Lines of the compiler's message that an error repeats.
MESSAGE_LINES = 30
EXECUTABLE = 0o755
_log = logging.getLogger(__name__)


@summarised
@dataclass(frozen=True)
class BuildResult:
    """Result of a build.

    Attributes:
        path: the library or program.
        command: the compiler's command line.
        seconds: time that the compiler took; 0 where an earlier build was up to date or in the
            cache.
        peak_bytes: peak memory of the compiler; 0 where it did not run, and where the platform does
            not report it.
        note: that it comes from the cache, or why the cache did not keep it.
    """

    path: Path
    command: tuple[str, ...]
    seconds: float
    peak_bytes: int = 0
    note: str = ""


def find_compiler(cc: str | None = None) -> tuple[str, ...]:
    """Return the command of a C compiler: `cc`, else $CC, else the first one on the PATH.

    Raises:
        CompilerError: there is none.
    """
    requested = cc or os.environ.get("CC", "")
    if requested:
        origin = "cc=" if cc else "the environment's CC"
        try:
            command = split_command(requested)
        except ValueError as error:
            raise CompilerError(
                f"C compiler {requested!r} ({origin}) is no command line: {error}; close its quotes"
            ) from error
        if shutil.which(requested):  # a path with spaces is one word
            command = (requested,)
        if command and Path(command[0]).stem.lower() in MSVC:
            raise CompilerError(f"C compiler {requested!r} ({origin}) {MSVC_FAULT}")
        if command and shutil.which(command[0]):
            return command
        raise CompilerError(f"C compiler {requested!r} ({origin}) is not on the PATH; install it")
    here = platform_of()
    for candidate in here.compilers:
        if shutil.which(candidate):
            return (candidate,)
    found = next((name for name in MSVC if shutil.which(name)), None)
    raise CompilerError(
        f"no C compiler on the PATH (tried {', '.join(here.compilers)}); install one "
        f"({here.advice}) or set CC" + (f". {found} is there, but {MSVC_FAULT}" if found else "")
    )


def compile_c(command: Sequence[str], output: Path) -> BuildResult:
    """Run `command -o output`, unless the cache has what it makes.

    The output appears only where the compiler succeeds.

    Raises:
        CompilerError: the compiler failed; its message is kept.
    """
    key = build_key(command) if folder() is not None else None
    content = None if key is None else read(key)
    if content is not None:
        with _partial(output) as partial:
            partial.write_bytes(content)
            partial.chmod(EXECUTABLE)
        return BuildResult(output, tuple(command), 0.0, note="from the cache")
    with _partial(output) as partial:
        result = _compile((*command, "-o", str(partial)), output)
        note = "" if key is None else write(key, partial.read_bytes())
    return replace(result, note=note)


@contextmanager
def _partial(output: Path) -> Iterator[Path]:
    """Yield a path beside the output, which becomes the output at the end.

    Raises:
        CompilerError: the folder cannot be written.
    """
    partial = output.with_name(f".{output.name}.{os.getpid()}{threading.get_ident()}")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        try:
            partial.replace(output)
        except PermissionError:
            if not output.exists():
                raise  # else, on Windows, another process has made the same and uses it
    except OSError as error:
        raise CompilerError(
            f"cannot build {output}: {error.strerror or error}; the folder must be writable"
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def _compile(command: tuple[str, ...], output: Path) -> BuildResult:
    """Run the compiler.

    Raises:
        CompilerError: it failed.
    """
    begin = time.perf_counter()
    _log.debug("%s", command)
    code, message, peak = _run(command)
    seconds = time.perf_counter() - begin
    if code != 0:
        excerpt = "\n".join(message.splitlines()[:MESSAGE_LINES])
        raise CompilerError(
            f"the C compiler failed (exit status {code}): {shlex.join(command)}\n{excerpt}"
        )
    return BuildResult(output, command, seconds, peak)


def _run(command: Sequence[str]) -> tuple[int, str, int]:
    """Run the command; return its exit status, its output, and its peak memory, bytes."""
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            peak = _wait(process)
        except BaseException:  # Ctrl-C: nothing writes after the files are removed
            process.terminate()
            process.wait()
            raise
        output.seek(0)
        return process.returncode, output.read().decode(errors="replace"), peak


def _wait(process: "subprocess.Popen[bytes]") -> int:
    """Wait for the process and its children; return the largest peak memory of one, bytes."""
    if sys.platform == "win32":
        process.wait()
        return 0
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


VECTORS = """\
typedef double v __attribute__((vector_size(16)));
#ifndef __GNUC__
#error "no vectors"
#endif
v f(v a, v b);
v f(v a, v b) { return (v)((a < b) & (1.0 - a == b)); }
"""


@cache
def has_vectors(command: tuple[str, ...]) -> bool:
    """Return whether a compiler knows vectors of lanes, GCC's extension of C."""
    return accepts((*command, "-c"), VECTORS)


@cache
def native_flags(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags for this machine's instructions where the compiler knows them."""
    for flag in ("-march=native", "-mcpu=native"):
        flags = (flag, *platform_of().native)
        if accepts((*command, *flags, "-c")):
            return flags
    return ()


def accepts(command: tuple[str, ...], text: str = "int x;\n") -> bool:
    """Return whether a compiler knows all flags of a command and compiles a text without a word."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(text, encoding="utf-8")
        full = [*command, "-Werror", "-Wno-psabi", str(source), "-o", str(Path(folder, "probe.o"))]
        return subprocess.run(full, capture_output=True, check=False).returncode == 0
