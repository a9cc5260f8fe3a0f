"""Exported C, shipped as its files; what was compiled before comes from the compile cache."""

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mbcasadi.codegen import CProject, open_project
from mbcasadi.codegen.compiler import process_folder
from mbcasadi.codegen.folder import BUILD_FOLDER

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
    """Return the export in a folder of this process; its library is built when it is loaded.

    Processes of one user share what they have compiled by `codegen.cache`.
    """
    folder = Path(tempfile.mkdtemp(dir=process_folder()))
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return open_project(folder)
