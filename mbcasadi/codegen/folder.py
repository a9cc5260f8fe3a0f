"""Writing the folder: all of it, or nothing."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mbcasadi.errors import ExportError

MANIFEST = "manifest.json"
BUILD_FOLDER = "build"


def write_folder(folder: Path, contents: Mapping[str, bytes], *, overwrite: bool) -> None:
    """Write `contents` (relative path → bytes) as `folder`, atomically.

    The files are written beside it and renamed into place, so that an interrupted export
    leaves the folder as it was.

    Raises:
        ExportError: the folder exists and may not be replaced, or cannot be written.
    """
    refuse_existing(folder, overwrite=overwrite)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise _cannot_write(folder, error) from error
    try:
        fresh = staging / "new"
        for name, data in contents.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        _swap(folder, fresh, staging / "old")
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def refuse_existing(folder: Path, *, overwrite: bool) -> None:
    """Raise `ExportError` where `folder` holds something that may not be replaced."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ExportError(f"{folder} exists and is no folder; give another one")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not overwrite:
        raise ExportError(f"{folder} is not empty; give another folder, or overwrite=True")
    foreign = _foreign_files(folder)
    if foreign:
        raise ExportError(
            f"{folder} holds files that no export wrote ({', '.join(foreign[:5])}); overwrite "
            "replaces only an earlier export: move them away, or give another folder"
        )


def _foreign_files(folder: Path) -> list[str]:
    """Return the entries of `folder` that do not come from an earlier export."""
    files = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir())
    try:
        exported = set(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return files
    exported.add(MANIFEST)
    return [
        name for name in files if name not in exported and not name.startswith(f"{BUILD_FOLDER}/")
    ]


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
