"""Files that are written beside their place and renamed into it: no reader finds half of one."""

import os
from collections.abc import Callable
from pathlib import Path
from threading import get_ident

from mbcasadi.errors import ProblemError


def write_whole(path: Path, write: Callable[[Path], None]) -> Path:
    """Let `write` make a file, and replace an earlier one once the new one is complete.

    Raises:
        ProblemError: no such folder, or a place that cannot be written.
    """
    if not path.name:
        raise ProblemError(f"cannot write '{path}': expected the name of a file")
    if not path.absolute().parent.is_dir():
        raise ProblemError(f"cannot write {path}: there is no folder {path.absolute().parent}")
    fresh = path.with_name(f".{path.stem}-{os.getpid()}-{get_ident()}{path.suffix}")
    try:
        write(fresh)
        fresh.replace(path)
    except OSError as error:
        raise ProblemError(
            f"cannot write {path}: {error.strerror or error}; choose a place that can be written"
        ) from error
    finally:
        fresh.unlink(missing_ok=True)
    return path
