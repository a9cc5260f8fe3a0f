"""A folder for what is compiled and not kept."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def process_folder() -> Path:
    """Return a temporary folder that is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="mbcasadi-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
