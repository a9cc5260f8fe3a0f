"""Text files that are written completely or not at all."""

import os
from contextlib import suppress
from pathlib import Path
from threading import get_ident

from mbcasadi.errors import ProblemError


def write_whole(path: Path, text: str) -> Path:
    """Write a file in UTF-8 and return its path; what was there stays where that fails.

    Raises:
        ProblemError: it cannot be written; the message says why.
    """
    fresh = path.with_name(f".{path.name}-{os.getpid()}-{get_ident()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise ProblemError(
            f"cannot write {path}: {error.strerror}; choose a place that can be written"
        ) from error
    return path
