"""Whether a folder holds an earlier export and nothing else, so that it may be replaced."""

import hashlib
import json
import re
from collections.abc import Mapping
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
