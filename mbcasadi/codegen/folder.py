"""Writing a folder: all of it, or nothing, and over an earlier export only."""

import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mbcasadi.errors import ExportError

MANIFEST = "manifest.json"
BUILD_FOLDER = "build"
MOST_LISTED = 5  # files that a message names

BUILD_PRODUCTS = re.compile(
    r"""build/(
        (lib\w+_|example_|timing_)[0-9a-f]{12}(_[01])?(\.so|\.dylib|\.dll|\.exe)?
      | \.(lib|example_|timing_)\w+(\.so|\.dylib|\.dll|\.exe)?\.\d+  # of an interrupted compiler
      | timing_\w+\.c
    )""",
    re.VERBOSE,
)
"""What `CProject` writes into the folder of its builds."""

CMAKE_PRODUCTS = re.compile(
    r"build/(CMakeCache\.txt|CMakeFiles/.*|cmake_install\.cmake|Makefile|build\.ninja|\.ninja_\w+"
    r"|compile_commands\.json|lib\w+\.a|\w+\.lib|\w+_example(\.exe)?"
    r"|lib\w+_shared\.(so|dylib|dll|dll\.a)|install_manifest\.txt)"
)
"""What CMake writes there, by the command in the export's README."""


def refuse_existing(folder: Path, *, overwrite: bool, discard_changes: bool = False) -> None:
    """Raise `ExportError` where `folder` holds something that may not be replaced.

    Args:
        folder: where an export is to be written.
        overwrite: whether an earlier export may be replaced: the files that its manifest lists,
            unchanged, and the products of builds.
        discard_changes: whether changed files of an earlier export, and files of others in its
            folder, may be deleted.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ExportError(f"{folder} exists and is no folder; give another one")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not overwrite:
        raise ExportError(f"{folder} is not empty; give another folder, or overwrite=True")
    hashes = _manifest_hashes(folder)
    if hashes is None:
        raise ExportError(
            f"{folder} holds files that no export wrote ({listed(_files(folder))}); overwrite "
            "replaces only an earlier export: move them away, or give another folder"
        )
    if discard_changes:
        return
    foreign = [name for name in _files(folder) if not _is_ours(name, hashes)]
    changed = [name for name in hashes if is_changed(folder / name, hashes[name])]
    faults = [
        f"files that no export wrote ({listed(foreign)})" if foreign else "",
        f"files that were changed since their export ({listed(changed)})" if changed else "",
    ]
    if any(faults):
        raise ExportError(
            f"{folder} holds {' and '.join(filter(None, faults))}; overwrite would delete them: "
            "move them away, give another folder, or discard_changes=True"
        )


def _files(folder: Path) -> list[str]:
    """Return everything in a folder that is no plain folder itself, relative to it."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )


def _manifest_hashes(folder: Path) -> dict[str, str] | None:
    """Return name → SHA-256 of the files that an earlier export wrote, None without a manifest."""
    try:
        hashes = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(hashes, Mapping):
        return None
    return {str(name): str(value) for name, value in hashes.items()}


def _is_ours(name: str, hashes: Mapping[str, str]) -> bool:
    return (
        name in hashes
        or name == MANIFEST
        or BUILD_PRODUCTS.fullmatch(name) is not None
        or CMAKE_PRODUCTS.fullmatch(name) is not None
    )


def is_changed(path: Path, expected: str) -> bool:
    """Return whether a file is there with other contents, or as a link or folder."""
    if path.is_symlink():
        return True
    if not path.exists():
        return False
    return path.is_dir() or hashlib.sha256(path.read_bytes()).hexdigest() != expected


def listed(names: list[str]) -> str:
    """Return the first names of a list, and how many more there are."""
    more = f", and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


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
