"""A log of supervised ticks, as the C writes it: a header and a ring of records."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.c_interface import STATES
from mbcasadi.codegen.manifest import Manifest, SignalEntry
from mbcasadi.codegen.supervision.layout import (
    LOG_READY,
    SupervisionEntry,
    header_type,
    record_type,
)
from mbcasadi.codegen.supervision.supervision import TickEvent
from mbcasadi.errors import ExportError
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class TickLog:
    """The last ticks of a supervised controller, the oldest first.

    Attributes:
        ticks: (n,) number of each tick since the log began.
        samples: (n,) number of its measurement.
        inputs, outputs: (n, size) by name, without the state; inputs that were null are NaN.
        codes: (n,) what the step returned.
        events: (n,) bits of `TickEvent`.
        faults: (n,) first entry that was not plausible, as "q[2] elbow"; "" where there is none.
        period: s.
        build: compiler and target that wrote it.
        torn: records that were being written when the log was copied; they are left out.
        damaged: records whose sums are of other bytes: altered, or overwritten while they were
            copied; they are left out.
        columns: name of an input or output → (name, unit) of each column, "" where it has none.
    """

    ticks: NDArray[np.int64]
    samples: NDArray[np.int64]
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    codes: NDArray[np.int64]
    events: NDArray[np.int64]
    faults: tuple[str, ...]
    period: float
    build: str
    torn: int
    damaged: int
    columns: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def _summary(self) -> dict[str, object]:
        return {
            "ticks": self.ticks.size,
            "seconds": self.ticks.size * self.period,
            "events": ", ".join(f"{name} {n}" for name, n in self.event_counts().items()),
            "build": self.build,
        }

    def event_counts(self) -> dict[str, int]:
        """Return how many ticks have each event that happened, by its name."""
        counts = {str(e.name): int(np.count_nonzero(self.events & int(e))) for e in TickEvent}
        return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True)
class RawLog:
    """A log's bytes.

    Attributes:
        header: its fields.
        records: complete ones, the oldest first.
        places: place of each in the file.
        torn: how many were being written.
        damaged: how many others are not as they were written.
    """

    header: np.void
    records: NDArray[Any]
    places: NDArray[np.int64]
    torn: int
    damaged: int

    @property
    def build(self) -> str:
        """Compiler and target that wrote it."""
        return text_of(self.header["build"])


def text_of(data: bytes) -> str:
    """Return a text of the header."""
    return bytes(data).decode("ascii", errors="replace")


def supervision_of(manifest: Manifest) -> SupervisionEntry:
    """Return the manifest's entry.

    Raises:
        ExportError: the export is not supervised.
    """
    entry = manifest.get("supervision")
    if entry is None:
        raise ExportError(
            f"{manifest['name']} has no supervision; export with supervision=Supervision(...)"
        )
    return entry


def records_type(manifest: Manifest) -> "np.dtype[Any]":
    """Return NumPy's type of the records of an export."""
    return record_type(supervision_of(manifest)["record"], manifest["real"])


def read_file(file: Path) -> bytes:
    """Return the bytes of a log.

    Raises:
        ExportError: the file cannot be read.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise ExportError(f"cannot read {file}: {error.strerror}") from error


def parse(manifest: Manifest, data: bytes, origin: str) -> RawLog:
    """Return the records in the bytes of a log.

    Raises:
        ExportError: it is no log, one of another export, or not whole.
    """
    kind, record = header_type(), records_type(manifest)
    if len(data) < kind.itemsize or np.frombuffer(data, "u4", 1)[0] != LOG_READY:
        swapped = len(data) >= 4 and int.from_bytes(data[:4], "big") == LOG_READY
        hint = "; its processor has another order of bytes" if swapped else ""
        raise ExportError(f"{origin} is no log of mbcasadi{hint}; give what {LOG_SOURCE}")
    header = np.frombuffer(data, kind, 1)[0]
    _require_same_export(manifest, header, record.itemsize, origin)
    capacity, filled, following = (int(header[n]) for n in ("capacity", "filled", "next"))
    complete = (len(data) - kind.itemsize) // record.itemsize
    words = np.frombuffer(data, "u4", kind.itemsize // WORD)
    fixed = np.concatenate([words[: FIXED[0]], words[FIXED[1] :]])
    if sums_of(fixed[None, :])[0][0] != header["sum"]:
        raise ExportError(f"the header of {origin} is not as it was written; copy the log again")
    if complete < min(capacity, filled) or filled > capacity or following >= capacity:
        raise ExportError(
            f"{origin} has {len(data)} bytes and {complete} ticks; its header says {filled} of "
            f"{capacity}: copy all of the log's memory"
        )
    rows = np.frombuffer(data, record, min(capacity, complete), kind.itemsize)
    ages = _ages(rows, header)
    if filled not in (capacity, following) or _is_other(ages, following, capacity):
        raise ExportError(
            f"the counters of {origin}, {filled} ticks of {capacity} and the next at {following}, "
            "do not fit its records; copy the log again"
        )
    return _raw_log(header, rows[:filled], ages[:filled])


def _raw_log(header: np.void, rows: NDArray[Any], ages: NDArray[np.int32]) -> RawLog:
    """Return the whole records in the order of their ticks.

    A record that was being written has begun at the header's last tick or later, and ends with the
    number that it had one turn of the ring before.
    """
    begin, end = rows["begin"][:, 0], rows["end"][:, 0]
    end_word = dict(rows.dtype.fields or {})["end"][1] // WORD
    words = rows.view("u4").reshape(rows.size, rows.dtype.itemsize // WORD)[:, :end_word]
    first, second = sums_of(words)
    is_summed = (first == rows["first_sum"][:, 0]) & (second == rows["second_sum"][:, 0])
    is_whole = (begin == end) & is_summed & (begin != 0)
    before = (end == 0) | (begin - end == header["capacity"])
    is_torn = np.where(begin == end, ages > 0, (ages >= 0) & before) & ~is_whole
    places = np.flatnonzero(is_whole)
    places = places[np.argsort(ages[places], kind="stable")]
    torn = int(np.count_nonzero(is_torn))
    return RawLog(header, rows[places], places, torn, rows.size - places.size - torn)


def _ages(rows: NDArray[Any], header: np.void) -> NDArray[np.int32]:
    """Return by how many ticks records are newer than the header; counters may begin anew."""
    ages: NDArray[np.int32] = (rows["begin"][:, 0] - header["ticks"]).view(np.int32)
    return ages


def _is_other(ages: NDArray[np.int32], following: int, capacity: int) -> bool:
    """Whether the last record is not that of the header's last tick, or of one turns later."""
    age = int(ages[following - 1])
    return age < -1 or age % capacity not in (0, capacity - 1)


def sums_of(words: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the two sums of rows of words, as the C computes them."""
    firsts = np.cumsum(words, axis=1, dtype=np.uint32)
    return firsts[:, -1], firsts.sum(axis=1, dtype=np.uint32)


WORD = 4  # bytes
FIXED = (4, 8)  # words of the header that change: next, filled, ticks, and the sum of the others
LOG_SOURCE = "<name>_log_init prepared, or `save_log` wrote"


def _require_same_export(
    manifest: Manifest, header: np.void, record_bytes: int, origin: str
) -> None:
    entry = supervision_of(manifest)
    for key, expected, meaning in (
        ("signature", manifest["signature"], "signature"),
        ("code", entry["code"], "code"),
    ):
        written = text_of(header[key])
        if written != expected:
            raise ExportError(
                f"{origin} was written by an export with the {meaning} {written!r}, this one has "
                f"{expected!r}; give the folder of the export that ran"
            )
    if int(header["record_bytes"]) != record_bytes:
        raise ExportError(
            f"{origin} has records of {int(header['record_bytes'])} bytes, the export's have "
            f"{record_bytes}; give the folder of the export that ran"
        )


def tick_log(manifest: Manifest, raw: RawLog) -> TickLog:
    """Return the records by name."""
    rows = raw.records
    inputs = without_state(manifest["inputs"])
    outputs = without_state(manifest["outputs"])
    values = _by_name(inputs, rows["in"])
    for bit, signal in enumerate(inputs):
        values[signal["name"]][rows["given"][:, 0] >> bit & 1 == 0] = np.nan
    names = entry_names(inputs)
    return TickLog(
        ticks=rows["begin"][:, 0].astype(np.int64),
        samples=rows["sample"][:, 0].astype(np.int64),
        inputs=values,
        outputs=_by_name(outputs, rows["out"]),
        codes=rows["code"][:, 0].astype(np.int64),
        events=rows["events"][:, 0].astype(np.int64),
        faults=tuple(names[k] if 0 <= k < len(names) else "" for k in rows["fault"][:, 0]),
        period=float(manifest["period"] or 0.0),
        build=raw.build,
        torn=raw.torn,
        damaged=raw.damaged,
        columns={s["name"]: _columns(s) for s in (*inputs, *outputs)},
    )


def _columns(signal: SignalEntry) -> tuple[tuple[str, str], ...]:
    nothing = [""] * signal["size"]
    names, units = signal["components"] or nothing, signal["units"] or nothing
    return tuple(zip(names, units, strict=True))


def _by_name(signals: Sequence[SignalEntry], values: NDArray[Any]) -> dict[str, Array]:
    ends = np.cumsum([s["size"] for s in signals])
    return {
        s["name"]: values[:, end - s["size"] : end].astype(float)
        for s, end in zip(signals, ends, strict=True)
    }


def without_state(signals: Sequence[SignalEntry]) -> list[SignalEntry]:
    """Return the signals of a supervised law: its state stays in its memory."""
    return [s for s in signals if s["name"] not in STATES]


def entry_names(signals: Sequence[SignalEntry]) -> list[str]:
    """Return the names of all entries of some signals, one after the other."""
    return [
        f"{s['name']}[{k}]" + (f" {s['components'][k]}" if s["components"] else "")
        for s in signals
        for k in range(s["size"])
    ]
