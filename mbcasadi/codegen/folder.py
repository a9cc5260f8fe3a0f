"""Writing the folder: all of it, or nothing."""

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mbcasadi.codegen.earlier_export import refuse_existing
from mbcasadi.errors import ExportError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NEW, OLD = "new", "old"  # in the staging folder: what is written, and what it replaces


def write_folder(
    folder: Path,
    contents: Mapping[str, bytes],
    *,
    overwrite: bool,
    discard_changes: bool = False,
) -> None:
    """Write `contents` (relative path → bytes) as `folder`, atomically.

    The files are written beside it and renamed into place, so that an interrupted export
    leaves the folder as it was. What a killed one has left beside it is removed by the next. Of
    several exports into one folder at the same time one replaces another as if they had come one
    after the other.

    Args:
        folder: where to write.
        contents: files by relative path.
        overwrite, discard_changes: what may be replaced; see `refuse_existing`.

    Raises:
        ExportError: the folder exists and may not be replaced, or cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{folder.name}-{_host()}-{os.getpid()}-"
        staging = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    except OSError as error:
        raise _cannot_write(folder, error) from error
    try:
        fresh = staging / NEW
        for name, data in contents.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        with _only_one(folder.parent):
            refuse_existing(folder, overwrite=overwrite, discard_changes=discard_changes)
            _swap(folder, fresh, staging / OLD)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def require_free(folder: Path, *, overwrite: bool, discard_changes: bool = False) -> None:
    """Raise `ExportError` where an export could not be written, before it is generated.

    What exports into `folder` left beside it when their processes were killed is removed.

    Args:
        folder: where to write.
        overwrite, discard_changes: what may be replaced; see `refuse_existing`.
    """
    if not folder.parent.is_dir():
        return
    try:
        with _only_one(folder.parent):
            _remove_stale_staging(folder)
            refuse_existing(folder, overwrite=overwrite, discard_changes=discard_changes)
    except OSError as error:
        raise _cannot_write(folder, error) from error


@contextmanager
def _only_one(parent: Path) -> Iterator[None]:
    """Wait until no other export looks at or renames folders in `parent`.

    The lock is on the folder itself, so that nothing stays behind; it ends with its process.
    Windows and some network file systems have none.
    """
    with ExitStack() as stack:
        if fcntl is not None:
            with suppress(OSError):
                handle = os.open(parent, os.O_RDONLY)
                stack.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _remove_stale_staging(folder: Path) -> None:
    """Remove what exports into `folder` left beside it when their processes were killed.

    Where one was killed between the two renames, the export that it was about to replace is put
    back first. Processes of other machines are left alone.
    """
    pattern = re.compile(rf"\.{re.escape(folder.name)}-{re.escape(_host())}-(\d+)-\w+")
    for staging in sorted(folder.parent.iterdir()):
        match = pattern.fullmatch(staging.name)
        if match is None or not staging.is_dir() or _is_alive(int(match.group(1))):
            continue
        if (staging / OLD).is_dir() and not folder.exists():
            (staging / OLD).rename(folder)
        shutil.rmtree(staging, ignore_errors=True)


def _host() -> str:
    """Return the machine's name in letters and digits; a folder may be shared by several."""
    return re.sub(r"\W", "", platform.node()) or "here"


def _is_alive(process: int) -> bool:
    if os.name != "posix" or process == os.getpid():
        return True  # on Windows no signal checks a process without ending it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it belongs to another user
        return True
    return True


def _swap(folder: Path, fresh: Path, previous: Path) -> None:
    """Put `fresh` in the place of `folder`; put the old one back where that fails."""
    if not folder.exists():
        fresh.rename(folder)
        return
    folder.rename(previous)
    try:
        fresh.rename(folder)
    except BaseException:
        previous.rename(folder)
        raise


def _cannot_write(folder: Path, error: OSError) -> ExportError:
    reason = error.strerror or type(error).__name__
    return ExportError(f"cannot write {folder}: {reason}; choose a folder that can be written")
