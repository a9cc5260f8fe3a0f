"""What was measured of an export, written into its manifest on request."""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mbcasadi.codegen.earlier_export import MANIFEST
from mbcasadi.codegen.manifest import Manifest, manifest_text
from mbcasadi.errors import ExportError


def record_measurement(
    folder: Path, manifest: Manifest, kind: str, name: str, values: Mapping[str, object]
) -> None:
    """Add a measurement to the manifest, in the folder and in memory.

    Args:
        folder: of the export.
        manifest: its content, which is changed.
        kind: "footprints" or "ticks".
        name: what was measured on; an earlier entry of this name is replaced.
        values: numbers and texts by name.

    Raises:
        ExportError: the folder holds another export by now, or cannot be written.
    """
    path = folder / MANIFEST
    try:
        present = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExportError(f"{folder} has no readable {MANIFEST} any more; export again") from error
    if type(present) is not type(manifest) or present.get("sha256") != manifest["sha256"]:
        raise ExportError(f"{folder} holds another export by now; open it again by open_project")
    present.setdefault("measured", {}).setdefault(kind, {})[name] = dict(values)
    _replace(path, manifest_text(present))
    manifest["measured"] = present["measured"]


def _replace(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=".manifest-", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(path.stat().st_mode)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()
        raise ExportError(f"cannot write {path}: {error.strerror}") from error
