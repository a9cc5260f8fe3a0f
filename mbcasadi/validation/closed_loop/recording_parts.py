"""The fields of a recording as matrices, each column with its name and unit."""

from dataclasses import fields
from typing import Any, NamedTuple

from numpy.typing import NDArray

from mbcasadi.validation.closed_loop.columns import Columns

SCALARS = {"t": "s", "status": "", "flags": "", "check": "", "closure": "m", "residual": "",
           "energy": "J"}  # fmt: skip
"""Fields with one number for each tick, and their units."""

OTHERS = ("contact_names", "monitor", "events", "columns")
"""Fields of a recording that are no arrays."""


class RecordingPart(NamedTuple):
    """One field as a matrix, with its columns."""

    values: NDArray[Any]
    columns: Columns


def parts_of(recording: Any) -> dict[str, RecordingPart]:
    """Return field → matrix (nt, n) with names and units; monitors as `monitor.<name>`."""
    arrays = {f.name: getattr(recording, f.name) for f in fields(recording)}
    arrays = {name: value for name, value in arrays.items() if name not in OTHERS}
    arrays |= {f"monitor.{name}": value for name, value in recording.monitor.items()}
    parts = {}
    for name, value in arrays.items():
        values = value.reshape(len(value), -1) if value.size else value.reshape(recording.ticks, 0)
        parts[name] = RecordingPart(values, _columns(recording, name, values.shape[1]))
    return parts


def headings_of(field: str, part: RecordingPart) -> list[str]:
    """Return `field.name [unit]` of each column of a field."""
    return [
        heading(f"{field}.{name}" if name else field, unit)
        for name, unit in zip(part.columns.names, part.columns.units, strict=True)
    ]


def heading(name: str, unit: str) -> str:
    """Return `name [unit]`; the brackets are empty where there is no unit."""
    return f"{name} [{unit}]"


def _columns(recording: Any, name: str, size: int) -> Columns:
    """Return the columns of a field; numbers where it has no names."""
    if name in SCALARS:
        return Columns(("",), (SCALARS[name],))
    columns: Columns | None = recording.columns.get(name)
    if columns is not None and len(columns.names) == size:
        return columns
    return Columns(tuple(str(i) for i in range(size)), ("",) * size)
