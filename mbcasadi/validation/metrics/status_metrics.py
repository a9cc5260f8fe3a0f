"""The statuses that a controller reported, and for how long."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric


@dataclass(frozen=True)
class StatusRow:
    """One status that occurred.

    Attributes:
        text: its meaning.
        safe: u was the safe output.
        ticks, share: how often.
        first: s, time of its first tick.
        longest: ticks of its longest run.
    """

    text: str
    safe: bool
    ticks: int
    share: float
    first: float
    longest: int


class SafeOutputs(NamedTuple):
    """How often a controller fell back to its safe output.

    Attributes:
        share: of all ticks.
        longest: ticks of the longest run of them.
        start: index of the first tick of that run.
    """

    share: float
    longest: int
    start: int


def status_rows(
    controller: Controller, status: NDArray[np.int64], t: NDArray[np.float64]
) -> tuple[StatusRow, ...]:
    """Return a row for each status that occurred, by their codes; none where there is no status.

    Args:
        controller: has the meaning of each code.
        status: (n,) codes.
        t: (n,) s.
    """
    if "status" in controller.unreported:
        return ()
    texts, rows = dict(enumerate(controller.statuses)), []
    for code in np.unique(status):
        equal = status == code
        rows.append(
            StatusRow(
                text=texts.get(int(code), f"status {code}"),
                safe=int(code) in controller.safe_statuses,
                ticks=int(equal.sum()),
                share=float(equal.mean()),
                first=float(t[np.argmax(equal)]),
                longest=longest_run(equal)[0],
            )
        )
    return tuple(rows)


def longest_run(values: NDArray[np.bool_]) -> tuple[int, int]:
    """Return length and first index of the longest run of True; (0, 0) where there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], values, [False]]).astype(int)))
    starts, ends = edges[::2], edges[1::2]
    if not starts.size:
        return 0, 0
    longest = int(np.argmax(ends - starts))
    return int(ends[longest] - starts[longest]), int(starts[longest])


def safe_outputs(controller: Controller, status: NDArray[np.int64]) -> SafeOutputs:
    """Return how often the safe output occurred in (n,) status codes."""
    safe = np.isin(status, controller.safe_statuses)
    return SafeOutputs(float(safe.mean()), *longest_run(safe))


def status_metrics(controller: Controller, recording: Recording) -> Iterator[Metric]:
    """Yield shares of solved ticks and of safe outputs, and the largest self-check residual.

    Nothing is yielded for a controller without a status.
    """
    if "status" in controller.unreported:
        return
    solved = float((recording.status == 0).mean())
    safe = safe_outputs(controller, recording.status)
    since = f", from {recording.t[safe.start]:g} s" if safe.longest else ""
    yield Metric("status.solved", solved, "", f"share of ticks: {controller.statuses[0]}")
    meaning = "share of ticks that fell back to a safe output"
    yield Metric("status.safe_output", safe.share, "", meaning)
    meaning = f"longest run of ticks with a safe output{since}"
    yield Metric("status.longest_failure", float(safe.longest), "ticks", meaning)
    yield Metric("status.check", float(recording.check.max()), "", "largest self-check residual")
