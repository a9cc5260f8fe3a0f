"""A recording as a table with one column for each number of a tick, and back."""

import json
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ProblemError
from mbcasadi.validation.closed_loop.columns import Columns
from mbcasadi.validation.closed_loop.recorded_ticks import RecordedTicks

SCALARS = {"t": "s", "status": "", "flags": "", "check": "", "closure": "m", "residual": "",
           "energy": "J"}  # fmt: skip
"""Fields with one number for each tick, and their units."""

WHOLE = ("status", "flags")  # whole numbers
THREE = ("contact_force", "contact_position")  # (nt, nc, 3)
OTHERS = ("contact_names", "monitor", "events", "columns")  # of a recording, no arrays


class Part(NamedTuple):
    """One field as a matrix, with its columns."""

    values: NDArray[Any]
    columns: Columns


def parts_of(recording: RecordedTicks) -> dict[str, Part]:
    """Return field → matrix (nt, n) with names and units; monitors as `monitor.<name>`."""
    arrays = {f.name: getattr(recording, f.name) for f in fields(recording)}
    arrays = {name: value for name, value in arrays.items() if name not in OTHERS}
    arrays |= {f"monitor.{name}": value for name, value in recording.monitor.items()}
    parts = {}
    for name, value in arrays.items():
        values = value.reshape(len(value), -1) if value.size else value.reshape(recording.ticks, 0)
        parts[name] = Part(values, _columns(recording, name, values.shape[1]))
    return parts


def _columns(recording: RecordedTicks, name: str, size: int) -> Columns:
    """Return the columns of a field; numbers where it has no names."""
    if name in SCALARS:
        return Columns(("",), (SCALARS[name],))
    columns = recording.columns.get(name)
    if columns is not None and len(columns.names) == size:
        return columns
    return Columns(tuple(str(i) for i in range(size)), ("",) * size)


def recording_of(
    parts: dict[str, Part], contact_names: tuple[str, ...], events: tuple[str, ...], source: str
) -> RecordedTicks:
    """Return the recording of its parts.

    Raises:
        ProblemError: fields are missing, or others are there; `source` names the file.
    """
    known = {f.name for f in fields(RecordedTicks)} - set(OTHERS)
    unknown = sorted(n for n in parts if n not in known and not n.startswith("monitor."))
    missing = sorted(known - parts.keys())
    if unknown or missing:
        raise ProblemError(
            f"{source} is no recording: fields missing: {', '.join(missing) or 'none'}; unknown: "
            f"{', '.join(unknown) or 'none'}; expected a file that Recording.save wrote"
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
    return RecordedTicks(
        **arrays, monitor=monitor, contact_names=contact_names, events=events, columns=named
    )


def columns_json(parts: dict[str, Part]) -> str:
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
