"""Exported C, shipped as its files and compiled once on each machine."""

import getpass
import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mbcasadi.codegen import CProject, open_project
from mbcasadi.codegen.earlier_export import BUILD_FOLDER, MANIFEST
from mbcasadi.errors import ExportError
from mbcasadi.validation.campaigns.file_lock import file_lock

KEY_DIGITS = 24
Files = Mapping[str, bytes]
"""Path in the exported folder → content."""


def read_files(project: CProject) -> dict[str, bytes]:
    """Return the files of an export without what was built from them."""
    paths = (p for p in sorted(project.folder.rglob("*")) if p.is_file())
    inside = {path.relative_to(project.folder): path for path in paths}
    return {
        name.as_posix(): path.read_bytes()
        for name, path in inside.items()
        if name.parts[0] != BUILD_FOLDER
    }


def hash_of_files(files: Files) -> str:
    """Return what tells one export from another."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def install_code(files: Files) -> CProject:
    """Return the export, written and compiled on this machine unless it is there already.

    The first process that needs it compiles it, while others wait.

    Raises:
        ExportError: the folder is not writable, or belongs to another user.
        CompilerError: no compiler, or it failed.
    """
    home = machine_folder()
    key = hash_of_files(files)[:KEY_DIGITS]
    with file_lock(home / f"{key}.lock"):
        folder = home / key
        if not (folder / MANIFEST).exists():
            _write(files, folder)
        project = open_project(folder)
        project.build()
    return project


def _write(files: Files, folder: Path) -> None:
    """Write the files; the manifest comes last, so that a folder with one is complete."""
    for name in sorted(files, key=lambda name: name == MANIFEST):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name])


def machine_folder() -> Path:
    """Return the folder of compiled exports on this machine, which only its user can write to.

    Raises:
        ExportError: it is not writable, or belongs to another user.
    """
    user = getpass.getuser() if sys.platform == "win32" else os.getuid()  # it may have no name
    folder = Path(tempfile.gettempdir()) / f"mbcasadi-campaigns-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise ExportError(f"cannot write to {folder}: {error.strerror}; set TMPDIR") from error
    if sys.platform != "win32" and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise ExportError(f"{folder} can be written to by other users; remove it, or set TMPDIR")
    return folder
