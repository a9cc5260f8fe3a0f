"""Recordings in files: .npz, .csv and .h5, with names and units of all columns."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.extras import optional_module
from mbcasadi.validation.closed_loop.columns import Columns
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.closed_loop.recording_parts import (
    OTHERS,
    SCALARS,
    RecordingPart,
    headings_of,
    parts_of,
)
from mbcasadi.validation.closed_loop.whole_file import write_whole

WHOLE = ("status", "flags")  # whole numbers
THREE = ("contact_force", "contact_position")  # (nt, nc, 3)


HDF5 = (".h5", ".hdf5")
SUFFIXES = (".npz", ".csv", *HDF5)
HEADING = re.compile(r"(?P<field>monitor\.[^. ]+|[^. ]+)(\.(?P<name>.*))? \[(?P<unit>[^\[\]]*)\]$")


@checked
def save_recording(recording: Recording, path: str | Path) -> Path:
    """Write a recording as `.npz`, `.csv` or `.h5` (`.hdf5`), by the suffix; return the path.

    An earlier file is replaced once the new one is complete. Columns have names and units:
    in CSV in the heading, `q.crank [rad]`; in npz as JSON in the array `columns`; in HDF5 as
    attributes `names` and `units` of each dataset. All digits are kept.

    Raises:
        ProblemError: another suffix, or no such folder.
        MissingExtraError: HDF5 needs h5py.
    """
    path = Path(path)
    writers: dict[str, Callable[[Recording, Path], None]] = {
        ".npz": _write_npz,
        ".csv": _write_csv,
    }
    write = writers.get(_suffix(path), _write_hdf5)
    return write_whole(path, lambda fresh: write(recording, fresh))


@checked
def load_recording(path: str | Path) -> Recording:
    """Read what `save_recording` wrote; CSV has no limits of the columns.

    Raises:
        ProblemError: no such file, another suffix, or no recording.
        MissingExtraError: HDF5 needs h5py.
    """
    path = Path(path)
    readers: dict[str, Callable[[Path], Recording]] = {".npz": _read_npz, ".csv": _read_csv}
    read = readers.get(_suffix(path), _read_hdf5)
    if not path.is_file():
        raise ProblemError(f"there is no file {path}")
    try:
        return read(path)
    except (KeyError, ValueError, OSError, IndexError, BadZipFile, csv.Error) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(
            f"{path} is no recording ({error}); expected a file that save_recording wrote"
        ) from error


def _suffix(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        raise ProblemError(
            f"{path}: a recording is saved as {', '.join(SUFFIXES)}, which the suffix chooses"
        )
    return path.suffix


def _write_npz(recording: Recording, path: Path) -> None:
    parts = parts_of(recording)
    arrays: dict[str, Any] = {name: part.values for name, part in parts.items()}
    np.savez_compressed(
        path,
        **arrays,
        contact_names=np.array(recording.contact_names, dtype=str),
        events=np.array(recording.events, dtype=str),
        columns=np.array(columns_json(parts)),
    )


def _read_npz(path: Path) -> Recording:
    with np.load(path, allow_pickle=False) as file:
        content = dict(file)
    columns = columns_from_json(str(content.pop("columns")))
    contacts, events = (tuple(content.pop(n).tolist()) for n in ("contact_names", "events"))
    parts = {name: RecordingPart(values, columns[name]) for name, values in content.items()}
    return recording_of(parts, contacts, events, str(path))


def _write_csv(recording: Recording, path: Path) -> None:
    """Write a heading `field.name [unit]` for each column, then the ticks, with all digits."""
    parts = parts_of(recording)
    headings = [each for field, part in parts.items() for each in headings_of(field, part)]
    rows = [part.values.tolist() for part in parts.values()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*headings, *(["events []"] if recording.events else [])])
        for k in range(recording.ticks):
            last = [json.dumps(recording.events) if k == recording.ticks - 1 else ""]
            row = [value for field in rows for value in field[k]]
            writer.writerow(row + (last if recording.events else []))


def _read_csv(path: Path) -> Recording:
    """Read what `_write_csv` wrote; fields without columns are empty, limits are unknown."""
    header, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
    events: tuple[str, ...] = ()
    if header[-1] == "events []":
        events = tuple(json.loads(rows[-1][-1]))
        header, rows = header[:-1], [row[:-1] for row in rows]
    values = np.array(rows, dtype=float).reshape(len(rows), len(header))
    places: dict[str, list[int]] = {}
    named: dict[str, list[tuple[str, str]]] = {}
    for i, text in enumerate(header):
        heading = HEADING.match(text)
        if heading is None:
            raise ProblemError(f"{path}: unknown heading {text!r}; expected 'field.name [unit]'")
        field = heading["field"]
        places.setdefault(field, []).append(i)
        named.setdefault(field, []).append((heading["name"] or "", heading["unit"]))
    parts = {
        field: RecordingPart(
            values[:, columns], Columns(*map(tuple, zip(*named[field], strict=True)))
        )
        for field, columns in places.items()
    }
    empty = RecordingPart(np.zeros((len(rows), 0)), Columns((), ()))
    parts = dict.fromkeys(_matrix_fields(), empty) | parts
    contacts = parts["contact_normal"].columns.names
    return recording_of(parts, contacts, events, str(path))


def _matrix_fields() -> list[str]:
    names = [part.name for part in fields(Recording)]
    return [name for name in names if name not in OTHERS and name not in SCALARS]


def _write_hdf5(recording: Recording, path: Path) -> None:
    h5py, parts = _h5py(), parts_of(recording)
    with h5py.File(path, "w") as file:
        for name, part in parts.items():
            data = file.create_dataset(name, data=part.values)
            data.attrs["names"] = list(part.columns.names)
            data.attrs["units"] = list(part.columns.units)
        file.attrs["contact_names"] = json.dumps(recording.contact_names)
        file.attrs["events"] = json.dumps(recording.events)
        # As a dataset: attributes end at 64 kB.
        file.create_dataset("columns", data=columns_json(parts))


def _read_hdf5(path: Path) -> Recording:
    with _h5py().File(path, "r") as file:
        columns = columns_from_json(file["columns"].asstr()[()])
        parts = {name: RecordingPart(file[name][()], columns[name]) for name in columns}
        contacts, events = (tuple(json.loads(file.attrs[n])) for n in ("contact_names", "events"))
    return recording_of(parts, contacts, events, str(path))


def _h5py() -> Any:
    return optional_module("h5py", "hdf5", "a recording as HDF5", ", or save it as .npz")


def recording_of(
    parts: dict[str, RecordingPart],
    contact_names: tuple[str, ...],
    events: tuple[str, ...],
    source: str,
) -> Recording:
    """Return the recording of its parts.

    Raises:
        ProblemError: fields are missing, or others are there; `source` names the file.
    """
    known = {f.name for f in fields(Recording)} - set(OTHERS)
    unknown = sorted(n for n in parts if n not in known and not n.startswith("monitor."))
    missing = sorted(known - parts.keys())
    if unknown or missing:
        raise ProblemError(
            f"{source} is no recording: fields missing: {', '.join(missing) or 'none'}; unknown: "
            f"{', '.join(unknown) or 'none'}; expected a file that save_recording wrote"
        )
    arrays: dict[str, Any] = {}
    monitor = {}
    for name, part in parts.items():
        values = part.values.astype(np.int64 if name in WHOLE else float)
        if name.startswith("monitor."):
            monitor[name.removeprefix("monitor.")] = values
        elif name in SCALARS:
            arrays[name] = values[:, 0]
        else:
            arrays[name] = values.reshape(len(values), -1, 3) if name in THREE else values
    if not contact_names:
        for name in THREE:
            arrays[name] = np.zeros((len(arrays["t"]), 0, 3))
    named = {name: part.columns for name, part in parts.items() if name not in SCALARS}
    return Recording(
        **arrays, monitor=monitor, contact_names=contact_names, events=events, columns=named
    )


def columns_json(parts: dict[str, RecordingPart]) -> str:
    """Return names, units and limits of all fields as JSON; infinite limits are null."""
    return json.dumps(
        {
            name: {
                "names": part.columns.names,
                "units": part.columns.units,
                "limits": [[_finite(x) for x in pair] for pair in part.columns.limits],
            }
            for name, part in parts.items()
        }
    )


def columns_from_json(text: str) -> dict[str, Columns]:
    """Return what `columns_json` wrote."""
    return {
        name: Columns(
            tuple(entry["names"]),
            tuple(entry["units"]),
            tuple(
                (-np.inf if lower is None else lower, np.inf if upper is None else upper)
                for lower, upper in entry["limits"]
            ),
        )
        for name, entry in json.loads(text).items()
    }


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
