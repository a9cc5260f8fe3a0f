"""Compilation of an exported folder: each library and program, its file name and time.

How long a compiler will take: lines of C times the rate at which it went last time here.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mbcasadi.codegen.cache.keys import digest
from mbcasadi.codegen.cache.store import read, write
from mbcasadi.codegen.compiler import BuildResult, compile_c
from mbcasadi.codegen.compiler_flags import Flags, compile_command, library_flags
from mbcasadi.codegen.folder import BUILD_FOLDER
from mbcasadi.codegen.manifest import DAQP, Manifest
from mbcasadi.errors import ExportError
from mbcasadi.platforms import (
    identity_flags,
    library_name,
    platform_of,
    program_name,
    search_flags,
)
from mbcasadi.progress import notes_to

FIRST_RATES = {"-O0": 4e-5, "-O1": 1.1e-4, "-O2": 2.0e-4, "-O3": 3.0e-4}
"""s per line, before anything was compiled: G1 and Go2 with gcc 12."""

SHORTEST_TIME = 1.0
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
    report = notes_to(progress) if lines else lambda _text: None
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
    known = read(_rate_key(command))
    levels = [FIRST_RATES[word] for word in command if word in FIRST_RATES]
    return lines * (float(known) if known else levels[-1] if levels else FIRST_RATES["-O0"])


def remember_rate(lines: int, command: Sequence[str], seconds: float) -> None:
    """Keep the rate of a compilation in the cache.

    Args:
        lines: of C.
        command: compiler and flags.
        seconds: that it took.
    """
    if seconds >= SHORTEST_TIME:
        write(_rate_key(command), repr(seconds / lines).encode())


def _rate_key(command: Sequence[str]) -> str:
    level = [word for word in command if word.startswith(("-O", "-m"))]
    return digest(("compiler's rate", command[0], *level))


@dataclass(frozen=True)
class Builder:
    """Compiles what an exported folder holds, unless it is up to date.

    Attributes:
        folder: of the export.
        name: prefix of its C symbols.
        manifest: of the export.
        progress: called with one line for each step.
    """

    folder: Path
    name: str
    manifest: Manifest
    progress: Callable[[str], None] | None

    def library(self, cc: str | None, flags: Flags) -> BuildResult:
        """Compile the shared library: the law, its interface for CasADi, its supervision."""
        received = received_library(self.folder, self.manifest, flags)
        if cc is None and received.exists():
            return BuildResult(received, (), 0.0, note="compiled on another machine")
        parts = ["", "_external"]
        parts += ["_supervised"] if self.manifest.get("supervision") is not None else []
        sources = [str(self._source(part)) for part in parts]
        own = library_flags(sources, self.manifest["flags"], cc, flags)
        command = (*self.command(cc, flags), *own, *sources)
        return self._compile(command, library_name(f"{self.name}_{self._key(command)}"))

    def mujoco_plugin(
        self, include: Path, library: Path, cc: str | None, flags: Flags
    ) -> BuildResult:
        """Compile the engine plugin with MuJoCo's headers and library."""
        command = (*self.command(cc, flags), "-isystem", str(include), *platform_of().shared)
        command += (str(self._source("_mujoco")), str(self._source()), str(library))
        command += search_flags(library.parent)
        return self._compile(command, library_name(f"{self.name}_mujoco_{self._key(command)}"))

    def example(self, cc: str | None, flags: Flags) -> BuildResult:
        """Compile `main.c` with the law into a program."""
        command = (*self.command(cc, flags), str(self.folder / "main.c"), str(self._source()))
        return self._compile(command, program_name(f"example_{self._key(command)}"))

    def timing_program(self, text: str, cc: str | None, flags: Flags) -> BuildResult:
        """Compile a program that is linked with the built library.

        Raises:
            ExportError: its source cannot be written.
        """
        source = self.folder / BUILD_FOLDER / f"timing_{self.name}.c"
        try:
            source.parent.mkdir(exist_ok=True)
            source.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ExportError(f"cannot write {source}: {error.strerror}") from error
        library = self.library(cc, flags).path
        command = (*self.command(cc, flags), str(source), str(library))
        command += search_flags(library.parent)
        name = f"timing_{self._key((*command, text))}"
        return self._compile(command, program_name(name), lines=0)

    def command(self, cc: str | None, flags: Flags) -> tuple[str, ...]:
        """Return the compiler with the flags that all parts have; the folder's comes last."""
        return tuple(compile_command(self.folder, self.manifest["flags"], cc, flags))

    def _source(self, part: str = "") -> Path:
        return self.folder / f"{self.name}{part}.c"

    def _compile(
        self, command: tuple[str, ...], output: str, lines: int | None = None
    ) -> BuildResult:
        """Compile unless it is there; `lines` are 0 where the law is only linked."""
        path = self.folder / BUILD_FOLDER / output
        includes, libraries = self._solver_flags()
        links = (*libraries, *platform_of().mathematics, *identity_flags(output))
        full = (*command, *includes, *links)
        if path.exists():
            return BuildResult(path, full, 0.0)
        lines = self._source().read_bytes().count(b"\n") if lines is None else lines
        return compile_with_estimate(full, path, lines, self.name, self.progress)

    def _solver_flags(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        solver = self.manifest["solver"]
        if solver is None or solver["name"] != DAQP:
            return (), ()
        if solver["origin"] == "system":
            return (), ("-ldaqpstat",)
        daqp = self.folder / "daqp"
        return ("-isystem", str(daqp / "include")), (str(daqp / "libdaqpstat.a"),)

    def _key(self, command: Sequence[str]) -> str:
        """Return a part of a file name that depends on `command` and the sources.

        A loaded library stays in the process, so a second export must not reuse its name.
        """
        return file_key(self.manifest, command)


def file_key(manifest: Mapping[str, object], command: Sequence[str]) -> str:
    """Return a part of a file name that depends on a command and an export."""
    exported = {key: value for key, value in manifest.items() if key != "measured"}
    content = json.dumps([exported, [str(word) for word in command]], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def received_library(folder: Path, manifest: Manifest, flags: Flags) -> Path:
    """Return where the library of another machine is put: an export's `build` then returns it."""
    words = manifest["flags"] if flags is None else flags
    key = file_key(manifest, ("received", *words))
    return folder / BUILD_FOLDER / library_name(f"{manifest['name']}_{key}")


LIBRARIES = ("libmujoco*.so*", "libmujoco*.dylib", "mujoco*.dll")
HEADER = Path("include") / "mujoco" / "mujoco.h"


def mujoco_files(folder: Path) -> tuple[Path, Path]:
    """Return the folder of MuJoCo's headers, and its library.

    Raises:
        ExportError: they are not there.
    """
    places = (folder, folder / "lib", folder / "bin")
    found = [path for place in places for pattern in LIBRARIES for path in place.glob(pattern)]
    if not (folder / HEADER).is_file() or not found:
        raise ExportError(
            f"{folder} holds no {HEADER.as_posix()} with MuJoCo's library; give the folder of the "
            "Python package, mujoco.__path__[0], or that of a release"
        )
    return (folder / "include").absolute(), min(found).absolute()
