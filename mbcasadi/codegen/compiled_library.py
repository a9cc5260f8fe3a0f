"""A compiled library as data: its bytes, and the machines that it runs on."""

import os
import platform
import struct
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mbcasadi.codegen.builder import received_library
from mbcasadi.codegen.calls import load_library
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.compiler_flags import Flags
from mbcasadi.codegen.project import CProject
from mbcasadi.errors import CompilerError, ExportError
from mbcasadi.platforms import machine_name


@dataclass(frozen=True)
class Machine:
    """What a compiled library depends on.

    Attributes:
        system: operating system, processor and size of a pointer.
        c_library: name and version; "" where the system has one that never changes.
        instructions: what the processor has beyond those of its kind.
    """

    system: str
    c_library: str
    instructions: frozenset[str]

    def __str__(self) -> str:
        return " with ".join(filter(None, (self.system, self.c_library)))


@cache
def this_machine() -> Machine:
    """Return the machine that this process runs on."""
    bits = 8 * struct.calcsize("P")
    c_library = " ".join(platform.libc_ver())
    if sys.platform == "darwin":
        c_library = f"macOS {platform.mac_ver()[0]}"
    elif sys.platform == "linux" and not c_library.strip():
        c_library = "a C library without a version"
    return Machine(
        f"{sys.platform} {platform.machine()} of {bits} bits", c_library.strip(), _instructions()
    )


def _instructions() -> frozenset[str]:
    """Return the sets of instructions as Linux lists them; elsewhere the processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    lines = (line.partition(":") for line in text.splitlines())
    listed = (words for key, _, words in lines if key.strip() in ("flags", "Features"))
    return frozenset(next(listed, "").split()) or frozenset({machine_name()})


@dataclass(frozen=True)
class CompiledLibrary:
    """The library of an export.

    Attributes:
        content: of the file.
        machine: that it was compiled on.
        is_native: whether the compiler was told to use more instructions than all processors of
            the kind have, as `-march=native` does.
    """

    content: bytes
    machine: Machine
    is_native: bool

    def fault(self, here: Machine) -> str:
        """Return why it does not run on a machine; "" where it does."""
        made_for = self.machine
        if (made_for.system, made_for.c_library) != (here.system, here.c_library):
            return f"it was compiled for {made_for}"
        missing = sorted(made_for.instructions - here.instructions) if self.is_native else []
        return f"it uses instructions that the processor lacks ({missing[0]})" if missing else ""


def compiled_library(project: CProject, flags: Flags = None) -> CompiledLibrary:
    """Build an export here unless it is up to date, and return its library.

    Raises:
        CompilerError: no compiler, or it failed.
    """
    result = project.build(flags=flags)
    return CompiledLibrary(result.path.read_bytes(), this_machine(), _is_native(result.command))


def _is_native(command: Sequence[str]) -> bool:
    return any(word.startswith("-m") for word in command)


def install_library(project: CProject, library: CompiledLibrary, flags: Flags = None) -> None:
    """Put the library of another machine into an export's folder, where `build` finds it.

    Where it does not run here nothing is put there, and the export is compiled as ever.

    Raises:
        CompilerError: it does not run here, and there is no compiler.
    """
    path = received_library(project.folder, project.manifest, flags)
    fault = "" if path.exists() else library.fault(this_machine())
    if not fault and not path.exists():
        fault = _put(project, library, path)
    if not fault:
        return
    try:
        find_compiler()
    except CompilerError as error:
        raise CompilerError(
            f"the node {platform.node()} cannot run the compiled C of {project.name!r}: {fault}, "
            f"the node is {this_machine()}, and it cannot compile it: {error}. Install a compiler "
            "there, or begin the campaign on a machine like the node"
        ) from error


def _put(project: CProject, library: CompiledLibrary, path: Path) -> str:
    """Write a library that can be loaded; return why it cannot, or ""."""
    path.parent.mkdir(exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}{threading.get_ident()}")
    try:
        partial.write_bytes(library.content)
        load_library(project.manifest, partial)
        partial.replace(path)
    except ExportError as error:
        return str(error)
    finally:
        partial.unlink(missing_ok=True)
    return ""
