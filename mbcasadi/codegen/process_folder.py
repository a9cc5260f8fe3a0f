"""A folder for what is compiled and not kept."""

import atexit
import hashlib
import shutil
import tempfile
from functools import cache
from pathlib import Path

from mbcasadi.platforms import platform_of


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
