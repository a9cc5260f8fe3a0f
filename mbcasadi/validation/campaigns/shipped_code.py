"""Exported C as data: its files, and the library that was compiled of them."""

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mbcasadi.codegen import CProject, open_project
from mbcasadi.codegen.compiled_library import CompiledLibrary, compiled_library, install_library
from mbcasadi.codegen.compiler import process_folder
from mbcasadi.codegen.folder import BUILD_FOLDER

Files = Mapping[str, bytes]
"""Path in an exported folder → content."""


@dataclass(frozen=True)
class ShippedCode:
    """An export for another process.

    Attributes:
        files: without what was built from them.
        flags: of the compiler; those of the export where None.
        library: compiled; None before that.
    """

    files: Files
    flags: tuple[str, ...] | None = None
    library: CompiledLibrary | None = None

    @staticmethod
    def of(project: CProject, flags: tuple[str, ...] | None = None) -> "ShippedCode":
        """Return an export as data, not compiled."""
        paths = (p for p in sorted(project.folder.rglob("*")) if p.is_file())
        inside = {path.relative_to(project.folder): path for path in paths}
        files = {
            name.as_posix(): path.read_bytes()
            for name, path in inside.items()
            if name.parts[0] != BUILD_FOLDER
        }
        return ShippedCode(files, flags)

    def with_library(self) -> "ShippedCode":
        """Return the same with its library, compiled here unless this process has done so.

        Raises:
            CompilerError: no compiler, or it failed.
        """
        return replace(self, library=compiled_library(self.install(), self.flags))

    def install(self) -> CProject:
        """Return the export in a folder of this process; `build` and `load` take the flags.

        Its library is the one that came with it where that runs here; else it is compiled, unless
        `codegen.cache` has it.

        Raises:
            CompilerError: the library does not run here, and there is no compiler.
        """
        folder = process_folder() / f"code_{digest_of_files(self.files)[:16]}"
        if not folder.exists():
            _write(self.files, folder)
        project = open_project(folder)
        if self.library is not None:
            install_library(project, self.library, self.flags)
        return project


def _write(files: Files, folder: Path) -> None:
    """Write files into a folder, which appears when it is complete."""
    begun = Path(tempfile.mkdtemp(dir=process_folder()))
    for name, content in files.items():
        path = begun / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    try:
        begun.rename(folder)
    except OSError:
        if not folder.exists():  # else another thread was first
            raise


def digest_of_files(files: Files) -> str:
    """Return what tells one export from another."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
