"""Entries by key in one folder: checked when read, written whole or not at all.

An entry is one file: the digest of its content in hexadecimal, a line break, the content. It is
written under a temporary name and renamed, so that other processes and threads see all of it or
nothing; an entry of the same key has the same meaning, so it does not matter whose rename is last.
"""

import hashlib
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from mbcasadi.errors import ExportError

FOLDER, LIMIT = "MBCASADI_CACHE", "MBCASADI_CACHE_LIMIT"
"""Environment variables."""

DEFAULT_LIMIT = 2 * 1024**3  # bytes
LEFT_AFTER_REMOVAL = 0.9  # of the limit, so that not every build removes something
UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
ENTRY, PARTIAL = ".entry", ".partial"
ABANDONED = 3600.0  # s after which a temporary file is that of a process that was ended

_log = logging.getLogger(__name__)
_enabled: ContextVar[bool] = ContextVar("mbcasadi_cache_enabled", default=True)


@dataclass(frozen=True)
class CacheInfo:
    """State of the cache.

    Attributes:
        folder: None where there is no cache.
        entries: their number.
        size, limit: bytes.
    """

    folder: Path | None
    entries: int
    size: int
    limit: int

    def __str__(self) -> str:
        if self.folder is None:
            return f"no cache ({FOLDER}=off)"
        mega = UNITS["M"]
        sizes = f"{self.size / mega:.1f} of {self.limit / mega:.0f} MiB"
        return f"{self.folder}: {self.entries} entries, {sizes}"


def folder() -> Path | None:
    """Return the folder of the cache, which may not exist yet; None where it is switched off."""
    requested = os.environ.get(FOLDER, "")
    if requested.lower() == "off" or not _enabled.get():
        return None
    if requested:
        return Path(requested).absolute()
    try:
        path = user_cache_path("mbcasadi", appauthor=False, opinion=False)
    except RuntimeError:  # there is no home
        return None
    return path if path.is_absolute() else None  # below "~", as older versions say that


def limit() -> int:
    """Return the largest size of the cache, bytes.

    Raises:
        ExportError: the environment variable is no size.
    """
    text = os.environ.get(LIMIT, "").strip()
    if not text:
        return DEFAULT_LIMIT
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?", text, re.IGNORECASE)
    if match is None:
        raise ExportError(f"{LIMIT} is {text!r}; expected a size such as 500M or 2G, or nothing")
    return int(float(match[1]) * UNITS[match[2].upper()])


def info() -> CacheInfo:
    """Return folder, number of entries and size of the cache.

    Raises:
        ExportError: the environment's limit is no size.
    """
    sizes = [size for _, size, _ in _entries(folder())]
    return CacheInfo(folder(), len(sizes), sum(sizes), limit())


def clear() -> int:
    """Remove all entries, and nothing else; return their number.

    An entry that another process holds open on Windows stays.
    """
    return sum(_remove(path) for path, _, _ in _entries(folder()))


@contextmanager
def disabled() -> Iterator[None]:
    """Generate and compile everything anew inside this context, in this thread."""
    token = _enabled.set(False)
    try:
        yield
    finally:
        _enabled.reset(token)


def read(key: str) -> bytes | None:
    """Return the content of an entry, which counts as used now; None where there is none.

    An entry that was damaged is removed.
    """
    place = folder()
    if place is None:
        return None
    path = place / f"{key}{ENTRY}"
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest != _digest(content):
        _remove(path)
        return None
    with suppress(OSError):  # of a folder that can only be read
        os.utime(path)
    _log.debug("from the cache: %s, %d bytes", path, len(content))
    return content


def write(key: str, content: bytes) -> str:
    """Keep an entry; return why it was not kept, or "".

    Raises:
        ExportError: the environment's limit is no size.
    """
    place, most = folder(), limit()
    if place is None:
        return ""
    if len(content) > most:
        return f"not kept in the cache: larger than its limit of {most} bytes"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(suffix=PARTIAL, dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(content) + b"\n" + content)
            Path(name).replace(place / f"{key}{ENTRY}")
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        return f"not kept in the cache: {place}: {error.strerror or error}"
    _remove_oldest(place, most)
    return ""


def _remove_oldest(place: Path, most: int) -> None:
    """Remove what was used least recently where the entries are larger than the limit."""
    entries = _entries(place)
    size = sum(entry[1] for entry in entries)
    if size <= most:
        return
    for path, bytes_of_entry, _ in sorted(entries, key=lambda entry: entry[2]):
        if size <= LEFT_AFTER_REMOVAL * most:
            break
        size -= bytes_of_entry * _remove(path)
    for path in place.glob(f"*{PARTIAL}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()


def _entries(place: Path | None) -> list[tuple[Path, int, float]]:
    """Return path, size and time of last use of each entry."""
    found = []
    for path in place.glob(f"*{ENTRY}") if place is not None else ():
        with suppress(OSError):  # another process has removed it
            status = path.stat()
            found.append((path, status.st_size, status.st_mtime))
    return found


def _remove(path: Path) -> int:
    """Remove a file; return 1 where it is gone, 0 where it cannot be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return 0
    return 1


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
