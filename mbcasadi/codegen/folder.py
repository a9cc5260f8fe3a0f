"""Writing the folder: all of it, or nothing."""

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mbcasadi.codegen.earlier_export import refuse_existing
from mbcasadi.errors import ExportError

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
    leaves the folder as it was. What a killed one has left beside it is removed by the next.

    Args:
        folder: where to write.
        contents: files by relative path.
        overwrite, discard_changes: what may be replaced; see `refuse_existing`.

    Raises:
        ExportError: the folder exists and may not be replaced, or cannot be written.
    """
    remove_stale_staging(folder)
    refuse_existing(folder, overwrite=overwrite, discard_changes=discard_changes)
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
        _swap(folder, fresh, staging / OLD)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def remove_stale_staging(folder: Path) -> None:
    """Remove what exports into `folder` left beside it when their processes were killed.

    Where one was killed between the two renames, the export that it was about to replace is put
    back first. Processes of other machines are left alone.
    """
    pattern = re.compile(rf"\.{re.escape(folder.name)}-{re.escape(_host())}-(\d+)-\w+")
    if not folder.parent.is_dir():
        return
    for staging in sorted(folder.parent.iterdir()):
        match = pattern.fullmatch(staging.name)
        if match is None or not staging.is_dir() or _is_alive(int(match.group(1))):
            continue
        try:
            if (staging / OLD).is_dir() and not folder.exists():
                (staging / OLD).rename(folder)
        except OSError as error:
            raise _cannot_write(folder, error) from error
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
