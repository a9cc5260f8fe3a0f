"""An earlier export, opened again: its manifest and its files are those of the export."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, cast

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.c_interface import signature_of_manifest
from mbcasadi.codegen.folder import MANIFEST, MOST_LISTED, is_changed, listed
from mbcasadi.codegen.manifest import FORMAT, Manifest
from mbcasadi.codegen.project import CProject
from mbcasadi.description.c_names import is_c_name
from mbcasadi.errors import ExportError

NEEDED_KEYS = frozenset(
    {
        "format",
        "name",
        "signature",
        "inputs",
        "outputs",
        "z0",
        "memory_bytes",
        "prepared_from",
        "operations",
        "largest_function",
        "flags",
        "solver",
        "sha256",
    }
)
"""What a `CProject` reads of the manifest."""

MOST_BYTES = 2**40
"""Of a controller's memory: beyond any machine."""


def _is_count(value: object, most: int = MOST_BYTES) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_list_of(value: object, kind: type | UnionType) -> bool:
    return isinstance(value, list) and all(isinstance(entry, kind) for entry in value)


def _are_signals(value: object) -> bool:
    """Whether it lists signals with a name and a size."""
    return _is_list_of(value, dict) and all(
        isinstance(entry.get("name"), str) and _is_count(entry.get("size"))
        for entry in cast("list[dict[str, object]]", value)
    )


KINDS: dict[str, Callable[[object], bool]] = {
    "name": lambda x: isinstance(x, str) and is_c_name(x),
    "signature": lambda x: isinstance(x, str),
    "inputs": _are_signals,
    "outputs": _are_signals,
    "z0": lambda x: x is None or _is_list_of(x, int | float),
    "memory_bytes": lambda x: _is_count(x) and cast("int", x) > 0,
    "prepared_from": lambda x: _is_list_of(x, str),
    "operations": lambda x: isinstance(x, dict) and all(map(_is_count, x.values())),
    "largest_function": _is_count,
    "flags": lambda x: _is_list_of(x, str),
    "solver": lambda x: x is None or isinstance(x, dict),
    "sha256": lambda x: isinstance(x, dict) and _is_list_of([*x, *x.values()], str),
}
"""What is right for each of these."""

FREE_TO_CHANGE = ("main.c", "CMakeLists.txt", "README.md")
NOT_COMPILED = (".fmu", ".xml", ".hpp")


@checked
def open_project(
    folder: str | Path,
    *,
    verify: bool = True,
    progress: Callable[[str], None] | None = None,
) -> CProject:
    """Return the folder of an earlier export as a `CProject`, wherever it was moved to.

    Args:
        folder: that `export_c` wrote.
        verify: compare the files that are compiled with their hashes in the manifest, and the
            signals in it with its signature.
        progress: called with one line for each step of a build.

    Raises:
        ExportError: there is no manifest in it, it is not that of an export, or a file was changed
            or removed since; the message names it.
    """
    path = Path(folder).absolute()
    content = read_manifest(path)
    if verify:
        require_unchanged(path, content)
        _require_signature(path, content)
    return CProject(path, content["name"], content, progress)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of an export.

    Raises:
        ExportError: it cannot be read, or it is not that of an export.
    """
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ExportError(
            f"{folder} has no readable {MANIFEST}; give a folder that export_c wrote"
        ) from error
    present = set(content) if isinstance(content, Mapping) else set()
    if present and content.get("format", FORMAT) != FORMAT:
        raise ExportError(
            f"{folder / MANIFEST} has format {content['format']}, of mbcasadi "
            f"{content.get('versions', {}).get('mbcasadi', 'of another version')}; this one reads "
            f"format {FORMAT}: export again"
        )
    missing = sorted(NEEDED_KEYS - present)
    if missing:
        raise ExportError(
            f"{folder / MANIFEST} lacks {', '.join(missing[:MOST_LISTED])}: it was changed, or is "
            "no export's; export again, or give a folder that export_c wrote"
        )
    wrong = [key for key, is_right in KINDS.items() if not is_right(content[key])]
    if wrong:
        raise ExportError(
            f"{folder / MANIFEST} has {wrong[0]} = {content[wrong[0]]!r:.80}, which no export "
            "writes: it was changed; export again"
        )
    return cast("Manifest", content)


def _require_signature(folder: Path, manifest: Manifest) -> None:
    """Raise `ExportError` where the manifest does not say what its own signature stands for."""
    try:
        found = signature_of_manifest(manifest)
    except (AttributeError, KeyError, TypeError):
        found = "none"
    if found != manifest["signature"]:
        raise ExportError(
            f"{folder / MANIFEST} lists signals of the signature {found}, and has "
            f"{manifest['signature']}: it was changed; export again, or verify=False"
        )


def require_unchanged(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise `ExportError` where a file that is compiled is not the one of the export.

    The example, the build file and the README may be changed.
    """
    hashes = {
        name: value
        for name, value in manifest["sha256"].items()
        if name not in FREE_TO_CHANGE and not name.endswith(NOT_COMPILED)
    }
    missing = [name for name in hashes if not (folder / name).exists()]
    changed = [name for name in hashes if is_changed(folder / name, hashes[name])]
    faults = [
        f"lacks files of its export ({listed(missing)})" if missing else "",
        f"holds files that were changed since their export ({listed(changed)})" if changed else "",
    ]
    if any(faults):
        raise ExportError(
            f"{folder} {' and '.join(filter(None, faults))}; export again, or verify=False to take "
            "it as it is"
        )
