"""Recordings in files: .npz, .csv and .h5, with names and units of all columns.

A file is written beside its place and renamed into it, so that a reader never finds half of one.
"""

import csv
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from typing import Any
from zipfile import BadZipFile

import numpy as np

from mbcasadi.errors import MissingExtraError, ProblemError
from mbcasadi.validation.closed_loop.columns import Columns
from mbcasadi.validation.closed_loop.recorded_ticks import RecordedTicks
from mbcasadi.validation.closed_loop.recording_table import (
    SCALARS,
    Part,
    columns_from_json,
    columns_json,
    parts_of,
    recording_of,
)

HDF5 = (".h5", ".hdf5")
SUFFIXES = (".npz", ".csv", *HDF5)
HEADING = re.compile(r"(?P<field>monitor\.[^. ]+|[^. ]+)(\.(?P<name>.*))? \[(?P<unit>[^\[\]]*)\]$")


def save_recording(recording: RecordedTicks, path: Path) -> Path:
    """Write a recording by the suffix of `path`; see `Recording.save`."""
    writers: dict[str, Callable[[RecordedTicks, Path], None]] = {
        ".npz": _write_npz,
        ".csv": _write_csv,
    }
    write = writers.get(_suffix(path), _write_hdf5)
    if not path.absolute().parent.is_dir():
        raise ProblemError(f"cannot write {path}: there is no folder {path.absolute().parent}")
    fresh = path.with_name(f".{path.stem}-{os.getpid()}-{get_ident()}{path.suffix}")
    try:
        write(recording, fresh)
        fresh.replace(path)
    except OSError as error:
        raise ProblemError(
            f"cannot write {path}: {error.strerror or error}; choose a place that can be written"
        ) from error
    finally:
        fresh.unlink(missing_ok=True)
    return path


def load_recording(path: Path) -> RecordedTicks:
    """Read a recording by the suffix of `path`; see `Recording.load`."""
    readers: dict[str, Callable[[Path], RecordedTicks]] = {".npz": _read_npz, ".csv": _read_csv}
    read = readers.get(_suffix(path), _read_hdf5)
    if not path.is_file():
        raise ProblemError(f"there is no file {path}")
    try:
        return read(path)
    except (KeyError, ValueError, OSError, IndexError, BadZipFile, csv.Error) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(
            f"{path} is no recording ({error}); expected a file that Recording.save wrote"
        ) from error


def _suffix(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        raise ProblemError(
            f"{path}: a recording is saved as {', '.join(SUFFIXES)}, which the suffix chooses"
        )
    return path.suffix


def _write_npz(recording: RecordedTicks, path: Path) -> None:
    parts = parts_of(recording)
    arrays: dict[str, Any] = {name: part.values for name, part in parts.items()}
    np.savez_compressed(
        path,
        **arrays,
        contact_names=np.array(recording.contact_names, dtype=str),
        events=np.array(recording.events, dtype=str),
        columns=np.array(columns_json(parts)),
    )


def _read_npz(path: Path) -> RecordedTicks:
    with np.load(path, allow_pickle=False) as file:
        content = dict(file)
    columns = columns_from_json(str(content.pop("columns")))
    contacts, events = (tuple(content.pop(n).tolist()) for n in ("contact_names", "events"))
    parts = {name: Part(values, columns[name]) for name, values in content.items()}
    return recording_of(parts, contacts, events, str(path))


def _write_csv(recording: RecordedTicks, path: Path) -> None:
    """Write a heading `field.name [unit]` for each column, then the ticks, with all digits."""
    parts = parts_of(recording)
    headings = [
        f"{field}.{name} [{unit}]" if name else f"{field} [{unit}]"
        for field, part in parts.items()
        for name, unit in zip(part.columns.names, part.columns.units, strict=True)
    ]
    rows = [part.values.tolist() for part in parts.values()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*headings, *(["events []"] if recording.events else [])])
        for k in range(recording.ticks):
            last = [json.dumps(recording.events) if k == recording.ticks - 1 else ""]
            row = [value for field in rows for value in field[k]]
            writer.writerow(row + (last if recording.events else []))


def _read_csv(path: Path) -> RecordedTicks:
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
        field: Part(values[:, columns], Columns(*map(tuple, zip(*named[field], strict=True))))
        for field, columns in places.items()
    }
    empty = Part(np.zeros((len(rows), 0)), Columns((), ()))
    parts = dict.fromkeys(_matrix_fields(), empty) | parts
    contacts = parts["contact_normal"].columns.names
    return recording_of(parts, contacts, events, str(path))


def _matrix_fields() -> list[str]:
    others = {"contact_names", "monitor", "events", "columns"}
    return [n for n in RecordedTicks.__dataclass_fields__ if n not in others and n not in SCALARS]


def _write_hdf5(recording: RecordedTicks, path: Path) -> None:
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


def _read_hdf5(path: Path) -> RecordedTicks:
    with _h5py().File(path, "r") as file:
        columns = columns_from_json(file["columns"].asstr()[()])
        parts = {name: Part(file[name][()], columns[name]) for name in columns}
        contacts, events = (tuple(json.loads(file.attrs[n])) for n in ("contact_names", "events"))
    return recording_of(parts, contacts, events, str(path))


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError(
            "a recording as HDF5 needs h5py, which is not installed: pip install "
            "'mbcasadi[hdf5]', or save it as .npz"
        ) from error
    return h5py
