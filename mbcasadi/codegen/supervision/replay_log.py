"""The ticks of a log, computed again by the compiled C: equal bit for bit, or to a tolerance."""

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.calls import BYTES, load_library, pointer
from mbcasadi.codegen.example_run import CLOSE, CLOSE_FLOAT, LEAST
from mbcasadi.codegen.manifest import Manifest
from mbcasadi.codegen.supervision.layout import header_type
from mbcasadi.codegen.supervision.supervised import new_log
from mbcasadi.codegen.supervision.tick_log import (
    RawLog,
    TickLog,
    parse,
    read_file,
    supervision_of,
    text_of,
    tick_log,
)
from mbcasadi.errors import ProblemError
from mbcasadi.progress import notes_to
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]
COMPARED = ("in", "out", "code", "events", "fault")
CODES = ("code", "events", "fault")
CHANGEABLE = ("last", "has_last", "is_pending", "is_tripped", "failed", "law_limit")
"""Parts of the state that a program may change between two ticks: it starts, resets or limits."""

BEFORE = "before."
MEANINGS = {"in": "inputs", "out": "outputs", "code": "what the step returned"}


def tick_count(n: int) -> str:
    """Return "1 tick is" or "7 ticks are"."""
    return "1 tick is" if n == 1 else f"{n} ticks are"


PROGRESS = 1000  # ticks between two lines


@summarised
@dataclass(frozen=True)
class LogReplay:
    """A log beside what the compiled C computes from it.

    Attributes:
        log: the ticks as they were.
        outputs: (n, size) by name, as computed now.
        is_equal: (n,) whether all of a tick is the same bit for bit, its next state included.
        interruptions: between how many records the controller was started, reset or limited, or
            records are missing.
        differences: largest difference of each output, in its unit.
        tolerance: of u, as a share of its largest value; 0 where bits are compared.
        build: compiler and target of this library.
        failures: numbers of the ticks that differ by more than the tolerance, or in status or
            events.
        first_difference: what differs in the first of them: inputs, outputs, codes, or the state
            that it leaves; "" without failures.
    """

    log: TickLog
    outputs: dict[str, Array]
    is_equal: NDArray[np.bool_]
    interruptions: int
    differences: dict[str, float]
    tolerance: float
    build: str
    failures: tuple[int, ...]
    first_difference: str

    @property
    def passed(self) -> bool:
        """Whether every tick is as it was, and there is one; at most one record is torn."""
        is_whole = self.log.torn <= 1 and not self.log.damaged
        return bool(self.log.ticks.size) and not self.failures and is_whole

    def _summary(self) -> dict[str, object]:
        return {"ticks": self.log.ticks.size, "result": self.sentence()}

    def sentence(self) -> str:
        """Return the result in one sentence."""
        n, same = self.log.ticks.size, int(np.count_nonzero(self.is_equal))
        if self.log.damaged:
            return (
                f"{self.log.damaged} of {n + self.log.torn + self.log.damaged} records are not as "
                "they were written: altered, or overwritten during the copy; copy the log again"
            )
        if not n:
            return "the log holds no tick"
        if same == n:
            return f"all {tick_count(n)} equal bit for bit" if n > 1 else "1 tick is the same"
        largest = self.differences.get("u", 0.0)
        head = f"{same} of {n} ticks are equal bit for bit; u differs by {largest:.2g} at most"
        if self.passed:
            return f"{head}, within {self.tolerance:g} of its largest value"
        wrong, first = len(self.failures), self.failures[0]
        return (
            f"{head}; {tick_count(wrong)} not as before, first tick {first}: "
            f"{self.first_difference}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the result in plain numbers."""
        return {
            "passed": self.passed,
            "ticks": int(self.log.ticks.size),
            "equal": int(np.count_nonzero(self.is_equal)),
            "interruptions": self.interruptions,
            "torn": self.log.torn,
            "damaged": self.log.damaged,
            "differences": self.differences,
            "tolerance": self.tolerance,
            "failures": list(self.failures),
            "first_difference": self.first_difference,
            "events": self.log.event_counts(),
            "faults": sorted({fault for fault in self.log.faults if fault}),
            "logged_by": self.log.build,
            "replayed_by": self.build,
        }


def replay(
    manifest: Manifest,
    library: Callable[[], Path],
    file: Path,
    tolerance: float | None,
    progress: Callable[[str], None] | None,
) -> LogReplay:
    """Compute the ticks of a log again; see `CProject.replay`.

    `library` compiles the export if that is necessary: it is called when the log is known to be
    one of this export.
    """
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise ProblemError(f"tolerance is {tolerance}, expected 0 or more")
    data = read_file(file)
    raw = parse(manifest, data, str(file))
    loaded = load_library(manifest, library())
    again = _again(manifest, loaded, data, raw, notes_to(progress))
    build = again.build
    if tolerance is None:
        close = CLOSE_FLOAT if manifest["real"] == "float" else CLOSE
        tolerance = 0.0 if build == raw.build else close
    return _compared(manifest, raw, again, tolerance)


def _again(
    manifest: Manifest,
    library: ctypes.CDLL,
    data: bytes,
    raw: RawLog,
    progress: Callable[[str], None],
) -> RawLog:
    """Return the records that the library computes from those of the log."""
    function = getattr(library, f"{manifest['name']}_replay")
    log = np.frombuffer(data + bytes(-len(data) % BYTES), float).copy()
    memory = np.zeros(supervision_of(manifest)["memory_bytes"] // BYTES)
    count = len(raw.places)
    again = new_log(manifest, library, max(1, count))
    for done, place in enumerate(raw.places):
        if done % PROGRESS == 0:
            progress(f"{done} of {count} ticks")
        function(pointer(memory), pointer(log), ctypes.c_uint32(int(place)), pointer(again))
    size = header_type().itemsize + max(1, count) * raw.records.dtype.itemsize
    return parse(manifest, again.tobytes()[:size], "the replay")


def _compared(manifest: Manifest, raw: RawLog, again: RawLog, tolerance: float) -> LogReplay:
    then, now = raw.records, again.records
    log, new = tick_log(manifest, raw), tick_log(manifest, again)
    same = _all_same(then, now, COMPARED)
    continued, interrupted = _next_states(then, now, tolerance)
    same[:-1] &= continued
    differences = {
        name: _largest_difference(values, new.outputs[name]) for name, values in log.outputs.items()
    }
    codes = _all_same(then, now, CODES)
    size = np.abs(log.outputs["u"]).max(initial=LEAST)
    error = _differences(log.outputs["u"], new.outputs["u"])
    is_close = codes & (error <= tolerance * size) if tolerance else same
    failed = np.flatnonzero(~is_close)
    return LogReplay(
        log=log,
        outputs=new.outputs,
        is_equal=same,
        interruptions=int(np.count_nonzero(interrupted)),
        differences=differences,
        tolerance=tolerance,
        build=text_of(again.header["build"]),
        failures=tuple(int(tick) for tick in log.ticks[failed]),
        first_difference=_first_difference(then, now, int(failed[0])) if failed.size else "",
    )


def _first_difference(then: NDArray[Any], now: NDArray[Any], k: int) -> str:
    """Return what differs in record k."""
    one = slice(k, k + 1)
    found = [name for name in COMPARED if not _all_same(then[one], now[one], [name])[0]]
    if not found and k + 1 < len(then):
        fields = [name for name in then.dtype.names or () if name.startswith(BEFORE)]
        after = slice(k + 1, k + 2)
        found = [
            f"the state {name.removeprefix(BEFORE)} behind it"
            for name in fields
            if not _all_same(then[after], now[one], [name])[0]
        ]
    return ", ".join(MEANINGS.get(name, name) for name in found)


def _next_states(
    then: NDArray[Any], now: NDArray[Any], tolerance: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Compare the state behind each tick with that of the next record; two arrays (n - 1,).

    Returns:
        whether it is the same but for what a program may change, and whether that was changed, or
        the next record is not of the next tick.
    """
    fields = [name for name in then.dtype.names or () if name.startswith(BEFORE)]
    changeable = [name for name in fields if name.removeprefix(BEFORE) in CHANGEABLE]
    fixed = [name for name in fields if name not in changeable]
    following = (then["begin"][1:] == then["begin"][:-1] + 1)[:, 0]
    begins = ~following | (then[f"{BEFORE}has_sample"][1:, 0] == 0)
    continued = _all_same(then[1:], now[:-1], fixed) | begins
    last = f"{BEFORE}last"
    codes = [name for name in changeable if name != last]
    error = _differences(then[last][1:].astype(float), now[last][:-1].astype(float))
    size = np.abs(then[last]).max(initial=LEAST)
    moved = error > tolerance * size
    return continued, begins | moved | ~_all_same(then[1:], now[:-1], codes)


def _all_same(a: NDArray[Any], b: NDArray[Any], names: Iterable[str]) -> NDArray[np.bool_]:
    """Return (n,) whether the fields of these names are the same bits."""
    same = [_same_bits(a[name], b[name]) for name in names]
    return np.asarray(np.all(same, axis=0))


def _same_bits(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Return (n,) whether rows are the same; NaN is the same as NaN."""
    same = a == b
    if a.dtype.kind == "f":
        same = (same & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
    return np.asarray(same.all(axis=1))


def _differences(a: Array, b: Array) -> Array:
    """Return (n,) the largest difference of each row; equal infinities and NaN count as none."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        gaps = np.where(same, 0.0, np.abs(a - b))
    return np.asarray(np.where(np.isnan(gaps), np.inf, gaps).max(axis=1, initial=0.0))


def _largest_difference(a: Array, b: Array) -> float:
    return float(_differences(a, b).max(initial=0.0))
