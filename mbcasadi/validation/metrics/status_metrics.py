"""What a controller said about its own answers, and for how long."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.metrics import Metric


@dataclass(frozen=True)
class StatusRow:
    """One status that occurred.

    Attributes:
        words: what it means.
        safe: u was the safe output.
        ticks, share: how often.
        first: s, time of its first tick.
        longest: ticks of its longest run.
    """

    words: str
    safe: bool
    ticks: int
    share: float
    first: float
    longest: int


def status_rows(controller: Controller, recording: Recording) -> tuple[StatusRow, ...]:
    """Return a row for each status that occurred, in the order of their codes."""
    return rows_of(controller, recording.status, recording.t)


def rows_of(
    controller: Controller, status: NDArray[np.int64], t: NDArray[np.float64]
) -> tuple[StatusRow, ...]:
    """Return a row for each status in (n,) codes at the times t."""
    words, rows = dict(enumerate(controller.statuses)), []
    for code in np.unique(status):
        mine = status == code
        rows.append(
            StatusRow(
                words=words.get(int(code), f"status {code}"),
                safe=int(code) in controller.safe_statuses,
                ticks=int(mine.sum()),
                share=float(mine.mean()),
                first=float(t[np.argmax(mine)]),
                longest=longest_run(mine)[0],
            )
        )
    return tuple(rows)


def longest_run(mine: NDArray[np.bool_]) -> tuple[int, int]:
    """Return length and first index of the longest run of True; (0, 0) where there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mine, [False]]).astype(int)))
    starts, ends = edges[::2], edges[1::2]
    if not starts.size:
        return 0, 0
    longest = int(np.argmax(ends - starts))
    return int(ends[longest] - starts[longest]), int(starts[longest])


def fell_back(controller: Controller, status: NDArray[np.int64]) -> tuple[float, int, int]:
    """Return the share of safe outputs, and length and first tick of their longest run."""
    safe = np.isin(status, controller.safe_statuses)
    return float(safe.mean()), *longest_run(safe)


def status_metrics(controller: Controller, recording: Recording) -> Iterator[Metric]:
    """Yield what the controller said about itself."""
    solved = float((recording.status == 0).mean())
    failed, longest, start = fell_back(controller, recording.status)
    since = f", from {recording.t[start]:g} s" if longest else ""
    yield Metric("status.solved", solved, "", f"share of ticks: {controller.statuses[0]}")
    words = "share of ticks that fell back to a safe output"
    yield Metric("status.safe_output", failed, "", words)
    words = f"longest run of ticks with a safe output{since}"
    yield Metric("status.longest_failure", float(longest), "ticks", words)
    yield Metric("status.check", float(recording.check.max()), "", "largest self-check residual")
